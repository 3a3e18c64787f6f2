"""`ferry run --card A,B --policy P,Q --alloc-conf C`: what is put around a script, and the table.

    comparison_test.py FERRY PYTHON PACKAGES
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON, PACKAGES = sys.argv[1:4]
BLOCKS = pathlib.Path(__file__).parent / "programs" / "blocks.py"
POLICIES = ("keep", "offload", "checkpoint", "checkpoint-offload")

# 12 GiB are saved by keep, and a twelfth at a time with blocks that are computed again.
LARGE = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, blocks
model = blocks.Model().cuda()
optimizer = torch.optim.SGD(model.parameters())
x = torch.zeros(2 << 20, 64, device="cuda")
for _ in range(3):
    model(x).backward()
    optimizer.step()
"""

# Its model returns its loss: what a policy's forward holds, the plan holds.
PLANNED = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, blocks
import torch_ferry as ferry
model = blocks.Model()
x = torch.zeros(4096, 64)
plan = ferry.plan(model, x, lambda loss: loss, card="h100", device="cuda", policies=["offload"])
plan.save(sys.argv[2])
"""


def run(*words, environment=None):
    return subprocess.run(
        [FERRY, "run", "--python", PYTHON, "--hide-gpu", *map(str, words)],
        env=dict(os.environ, OMP_NUM_THREADS="1", **(environment or {})), capture_output=True,
        text=True, timeout=300)


def table(text):
    lines = [line.split("  ") for line in text.splitlines()]
    lines = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


class Policies(unittest.TestCase):
    def peak(self, policy, *options):
        # PyTorch 2.12 makes cuBLASLt's workspace so large that it would be most of a peak.
        done = run("--policy", policy, *options, BLOCKS,
                   environment={"CUBLASLT_WORKSPACE_SIZE": "1024"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 violations", done.stderr)
        same, peak = done.stdout.split()
        self.assertEqual(same, "True")
        return int(peak)

    def test_each_lowers_the_peak_and_leaves_the_gradients_as_they_are(self):
        keep = self.peak("keep")
        for policy, schedule in (("offload", ()), ("offload", ("--main-first",)),
                                 ("checkpoint", ()), ("checkpoint-offload", ("--side-first",))):
            self.assertLess(self.peak(policy, *schedule), 0.8 * keep, (policy, schedule))

    def test_a_plans_file_is_carried_out(self):
        with tempfile.TemporaryDirectory() as folder:
            script, plan = (pathlib.Path(folder) / name for name in ("script.py", "blocks.plan"))
            script.write_text(PLANNED)
            subprocess.run([PYTHON, script, BLOCKS.parent, plan], check=True,
                           env=dict(os.environ, PYTHONPATH=PACKAGES))
            verdict = pathlib.Path(folder) / "verdict.json"
            self.peak(plan, "--json", verdict)
            # By default the plan of this policy has a window that all of this is within.
            simulated = json.loads(verdict.read_text())["simulated"]
            self.assertGreater(simulated["pinned_bytes"], 2 << 20)
            plan.write_text("no plan\n")
            done = run("--policy", plan, BLOCKS)
            self.assertEqual((done.returncode, done.stdout), (7, ""))
            self.assertIn("blocks.plan", done.stderr)


class Table(unittest.TestCase):
    def test_cards_and_policies_are_compared_and_what_does_not_fit_is_an_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            script, verdict = (pathlib.Path(folder) / name for name in ("script.py", "rows.json"))
            script.write_text(LARGE)
            done = run("--card", "h100,rtx4090", "--policy", ",".join(POLICIES), "--no-values",
                       "--json", verdict, script, BLOCKS.parent)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = table(done.stdout)
            said = json.loads(verdict.read_text())["rows"]
        expected = [(card, policy) for card in ("h100", "rtx4090") for policy in POLICIES]
        self.assertEqual([(row["card"], row["policy"]) for row in rows], expected)
        self.assertEqual([(row["card"], row["policy"]) for row in said], expected)
        self.assertEqual([row["fits"] for row in rows], ["yes"] * 4 + ["no"] + ["yes"] * 3)
        self.assertEqual([row["fits"] for row in said], [True] * 4 + [False] + [True] * 3)
        self.assertIn("Tried to allocate", said[4]["simulated"]["out_of_memory"])
        self.assertEqual([row["slowdown"] for row in rows[::4]], ["1.000", "-"])
        self.assertTrue(1 < float(rows[2]["slowdown"]) < 1.5, rows[2])
        self.assertEqual({row["races"] for row in rows}, {"0"})
        self.assertEqual([row["host"] for row in rows if "offload" not in row["policy"]],
                         ["0 B"] * 4)

    def test_settings_of_the_allocator_are_compared(self):
        setting = "expandable_segments:True,max_split_size_mb:21"
        done = run("--alloc-conf", "", "--alloc-conf", setting, BLOCKS,
                   environment={"PYTORCH_ALLOC_CONF": "nonsense:1"})
        # The first row has what the environment says.
        first, second = table(done.stdout)
        self.assertEqual((first["fits"], second["fits"]), ("error", "yes"), done.stderr)
        self.assertEqual(second["allocator"], setting)

    def test_each_seed_draws_a_schedule_and_the_values_show_a_race_under_some(self):
        buffer = BLOCKS.with_name("double_buffer.py")
        with tempfile.TemporaryDirectory() as folder:
            verdict = pathlib.Path(folder) / "rows.json"
            done = run("--seed", "3", "--seeds", "4", "--json", verdict, buffer)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([row["seed"] for row in table(done.stdout)], list("3456"))
            script = pathlib.Path(folder) / "script.py"
            # Wrong values end it.
            script.write_text(buffer.read_text().replace("print(", "assert ("))
            done = run("--seeds", "6", "--json", verdict, script, "--no-load")
            self.assertEqual(done.returncode, 1, done.stderr)
            rows = json.loads(verdict.read_text())["rows"]
        self.assertEqual([row["seed"] for row in rows], list(range(6)))
        self.assertEqual({row["exit_code"] for row in rows}, {0, 1})
        self.assertTrue(all(row["violations"] for row in rows))

    def test_a_script_that_fails_shows_the_end_of_what_it_printed(self):
        done = run("--policy", "keep,offload", BLOCKS, "--fails")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([row["fits"] for row in table(done.stdout)], ["error", "error"])
        self.assertIn("  on purpose\n", done.stderr)

    def test_a_race_is_reported_with_its_row(self):
        done = run("--policy", "keep,offload", BLOCKS, "--races")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([row["races"] for row in table(done.stdout)], ["1", "1"])
        self.assertIn("blocks.py:", done.stderr)

    def test_what_cannot_be_compared_is_refused(self):
        for words, why in ((("--log", "x", "--policy", "keep,offload"), "--log: expected with one"),
                           (("--seeds", "2", "--side-first"), "--side-first"),
                           (("--seeds", "0"), "--seeds"),
                           (("--sarif", "x", "--card", "h100,a100"), "--sarif: expected with one"),
                           (("--policy", "offlaod"), "did you mean 'offload'?"),
                           (("--policy", "/nowhere.plan"), "or the file of a plan; got")):
            done = run(*words, BLOCKS)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
