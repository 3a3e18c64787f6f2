"""`ferry plan` beside a table of whole trainings' memory: the shipped programs' rows.

The table (FERRY_MEMORY_TABLE) was made by PyTorch 2.11's own allocator, dispatcher and host code
over a CUDA runtime whose launches did nothing and whose addresses went up.
"""

import csv
import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(os.environ.get(
    "FERRY_MEMORY_TABLE", ROOT.parent / "shared/data/training-memory/shared.csv"))
FERRY = os.environ.get("FERRY_PROGRAM", "")
CARDS = {"90": "h200", "80": "a100"}
POLICIES = {"off": "keep", "noreentrant": "checkpoint"}
OPTIMIZERS = {"none": ["none"], "adamw": ["adamw"], "sgd": ["momentum"],
              "fused": ["adamw", "--optimizer-implementation", "fused"]}

# GPT-2 kept and recomputed, accumulated, on two cards; Llama-3-8B kept and recomputed.
ROWS = ("S01", "S02", "S03", "S04", "S08", "S10", "S15", "S17", "S18", "S19", "S20", "S21")


# TRL's OffloadActivations, which the table's script told of no parameters.
OFFLOADED = ("S12", "S13", "S22")


def policy_of(row):
    if row["offload"] == "trl":
        return ["offload-all", "--offload-all-as", "trl-untold"]
    return [POLICIES[row["ckpt"]]]


def planned(row, steps):
    command = [FERRY, "plan", row["model"], "--card", CARDS[row["sm"]], "--policy",
               *policy_of(row), "--microbatches", row["accum"], "--steps", str(steps),
               "--unchecked", "--json", "--segments-go-up", "--optimizer", *OPTIMIZERS[row["opt"]]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["rows"][0]


@unittest.skipUnless(os.path.exists(FERRY), "no FERRY_PROGRAM: the program was not built")
@unittest.skipUnless(TABLE.exists(), "no data: there is no table of trainings' memory")
class MemoryTableTest(unittest.TestCase):
    def setUp(self):
        with TABLE.open() as lines:
            self.rows = {row["id"]: row for row in csv.DictReader(lines)}

    def near(self, seen, expected, share, what):
        self.assertLessEqual(abs(seen / int(expected) - 1), share, f"{what}: {seen}, {expected}")

    def test_each_step_is_that_of_the_table(self):
        for name in ROWS + OFFLOADED:
            for step in (1, 2, 3):
                with self.subTest(row=name, step=step):
                    row, seen = self.rows[name], planned(self.rows[name], step)
                    self.near(seen["device_peak_bytes"], row[f"peak_{step}"], 2e-5, "allocated")
                    self.near(seen["device_reserved_bytes"], row[f"reserved_{step}"], 2e-5,
                              "reserved")

    # Of the optimizer's step the table has no requested bytes.
    def test_what_was_asked_for_is_that_of_the_table(self):
        compared = 0
        for name in ROWS:
            for step in (1, 2, 3):
                row = self.rows[name]
                if row[f"peak_{step}"] != row[f"peak_fwdbwd_{step}"]:
                    continue
                compared += 1
                with self.subTest(row=name, step=step):
                    self.near(planned(row, step)["device_requested_bytes"],
                              row[f"req_peak_fwdbwd_{step}"], 2e-5, "requested")
        self.assertGreater(compared, 2 * len(ROWS))

    # To the byte, but for a segment of the first step's.
    def test_what_is_pinned_is_that_of_the_table(self):
        for name in OFFLOADED:
            for step in (2, 3):
                with self.subTest(row=name, step=step):
                    self.assertEqual(planned(self.rows[name], step)["host_peak_bytes"],
                                     int(self.rows[name]["host_pinned"]))

    def test_it_runs_in_what_pytorch_ran_in(self):
        for name in ROWS + OFFLOADED:
            with self.subTest(row=name):
                row, seen = self.rows[name], planned(self.rows[name], 3)
                self.near(seen["least_bytes"], row["mincap_default"], 0.01, "least capacity")


if __name__ == "__main__":
    unittest.main()
