"""Memory snapshots: of PyTorch's own allocator on the virtual GPU, which the simulated one replays
to the address; and of simulated runs, which torch.cuda._memory_viz shows with the same totals.

    snapshot_test.py FERRY PYTHON     PYTHON has PyTorch
"""

import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
PROGRAMS = pathlib.Path(__file__).parent / "programs"

# Memory that is short, on a 12 GB card: retries, an emptied cache, blocks that wait for a stream,
# out of memory; and a second stream's own segments.
SCRIPT = """
import torch
GiB = 1 << 30
side = torch.cuda.Stream()
kept = [torch.empty(700_000 * n, dtype=torch.uint8, device="cuda") for n in range(1, 40)]
del kept[::3]
shared = torch.empty(3 * GiB, dtype=torch.uint8, device="cuda")
shared.record_stream(side)
del shared
for size in (5 * GiB, 7 * GiB, 4 * GiB):
    torch.empty(size, dtype=torch.uint8, device="cuda")
del kept[::2]
with torch.cuda.stream(side):
    other = [torch.empty(1 << n, dtype=torch.uint8, device="cuda") for n in range(30)]
    del other[::2]
torch.cuda.empty_cache()
again = [torch.empty(900_000 * n, dtype=torch.uint8, device="cuda") for n in range(1, 30)]
try:
    torch.empty(20 * GiB, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    print("out of memory")
"""

# What _memory_viz makes of a snapshot: its texts, and the totals in the first of them.
VIZ = """
import json, pickle, sys
from torch.cuda import _memory_viz as viz
with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
plots = [len(viz.trace_plot(snapshot)), len(viz.trace_plot(snapshot, plot_segments=True)),
         len(viz.segment_plot(snapshot))]
totals = [sum(segment[key] for segment in snapshot["segments"])
          for key in ("total_size", "requested_size")]
totals = [str(viz.Bytes(total)) for total in totals]
print(json.dumps([viz.segsum(snapshot), viz.trace(snapshot), plots, totals]))
"""


def call(*words, **options):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=500,
                          **options)


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def entries(snapshot):
    """The allocator's own, of the device."""
    return [entry for entry in snapshot["device_traces"][0]
            if entry["action"] not in ("snapshot", "user_defined")]


class OfTheVirtualGpu(unittest.TestCase):
    def record(self, script, folder, *options, expected=0):
        path = pathlib.Path(folder) / "snapshot.pickle"
        environment = dict(os.environ, OMP_NUM_THREADS="1", PYTORCH_CUDA_ALLOC_CONF="")
        done = call(FERRY, "run", "--python", PYTHON, "--hide-gpu", "--snapshot", path, *options,
                    *script, env=environment)
        self.assertEqual(done.returncode, expected, done.stderr)
        return path, done

    def assert_replayed(self, path):
        done = call(FERRY, "replay", path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"the same: {len(entries(load(path)))} entries", done.stdout)

    def test_a_training_is_replayed_to_the_address(self):
        with tempfile.TemporaryDirectory() as folder:
            path, _ = self.record([PROGRAMS / "training.py"], folder)
            self.assertGreater(len(entries(load(path))), 100)
            self.assert_replayed(path)

    def test_and_a_shortage_with_the_allocators_options(self):
        for conf in ("", "expandable_segments:True", "max_split_size_mb:200",
                     "roundup_power2_divisions:4,large_segment_size_mb:40"):
            with self.subTest(conf), tempfile.TemporaryDirectory() as folder:
                options = ["--no-values", "--card", "rtx3060"]
                options += ["--alloc-conf", conf] if conf else []
                path, done = self.record(["-c", SCRIPT], folder, *options)
                self.assertEqual(done.stdout, "out of memory\n")
                actions = {entry["action"] for entry in entries(load(path))}
                freed = "segment_unmap" if "expandable" in conf else "segment_free"
                self.assertLessEqual({"oom", "free_completed", freed}, actions)
                self.assert_replayed(path)

    def test_an_address_that_moved_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            path, _ = self.record([PROGRAMS / "training.py"], folder)
            snapshot = load(path)
            last = [entry for entry in entries(snapshot) if entry["action"] == "alloc"][-1]
            for entry in snapshot["device_traces"][0]:
                if entry["addr"] == last["addr"] and entry["time_us"] >= last["time_us"]:
                    entry["addr"] += 512
            path.write_bytes(pickle.dumps(snapshot))
            done = call(FERRY, "replay", path)
            self.assertIn(done.returncode, (2, 6), done.stdout + done.stderr)

    def test_it_is_of_one_run(self):
        done = call(FERRY, "run", "--snapshot", "x.pickle", "--card", "h100,a100", "-c", "pass")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--snapshot: expected with one card", done.stderr)


class OfTheSimulator(unittest.TestCase):
    def test_what_memory_viz_shows_has_the_runs_totals(self):
        for conf in ("", "expandable_segments:True"):
            with self.subTest(conf), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "snapshot.pickle"
                done = call(FERRY, "simulate", "gpt2", "--card", "rtx4090", "--policy", "keep",
                            "--unchecked", "--json", "--snapshot", path, "--alloc-conf", conf)
                self.assertEqual(done.returncode, 0, done.stderr)
                row = json.loads(done.stdout)["rows"][0]
                snapshot = load(path)
                self.assert_totals(snapshot, row)
                shown = call(PYTHON, "-c", VIZ, path)
                self.assertEqual(shown.returncode, 0, shown.stderr)
                segsum, trace, plots, (reserved, allocated) = json.loads(shown.stdout)
                self.assertIn(f"total_reserved: {reserved}\ntotal_allocated: {allocated}\n", segsum)
                self.assertIn(f"segments: {len(snapshot['segments'])}\n", segsum)
                self.assertIn(f"{len(snapshot['device_traces'][0])} entries\n", trace)
                self.assertGreater(min(plots), 100_000)
                replayed = call(FERRY, "replay", path)
                self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)

    def assert_totals(self, snapshot, row):
        reserved = allocated = 0
        peak_reserved = peak_allocated = 0
        sizes = {}
        rounded = {block["address"]: block["size"] for segment in snapshot["segments"]
                   for block in segment["blocks"]}
        self.assertTrue(rounded)
        for entry in snapshot["device_traces"][0]:
            size = entry["size"]
            if entry["action"] in ("segment_alloc", "segment_map"):
                reserved += size
            elif entry["action"] in ("segment_free", "segment_unmap"):
                reserved -= size
            elif entry["action"] == "alloc":
                allocated += size
                sizes[entry["addr"]] = size
            elif entry["action"] == "free_requested":
                allocated -= sizes.pop(entry["addr"])
            peak_reserved = max(peak_reserved, reserved)
            peak_allocated = max(peak_allocated, allocated)
        self.assertEqual(peak_reserved, row["device_reserved_bytes"])
        self.assertEqual(reserved, sum(s["total_size"] for s in snapshot["segments"]))
        self.assertEqual(allocated, sum(s["requested_size"] for s in snapshot["segments"]))
        # As requested: what the blocks have more is their rounding.
        self.assertLessEqual(peak_allocated, row["device_peak_bytes"])
        self.assertGreater(peak_allocated, 0.99 * row["device_peak_bytes"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
