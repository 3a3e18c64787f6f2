"""The peak of memory at the end of `ferry run`, and in `ferry explain` of its log and snapshot: who
made it, by operator and line.

    peak_test.py FERRY PYTHON     PYTHON has PyTorch
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
MIB = 1 << 20

# The peak is in backward: x, its product with itself, and two gradients of 8 MiB each. The 24 MiB
# from before are gone.
SCRIPT = """
import torch
torch.cuda.memory._record_memory_history(stacks="all")
early = torch.ones(6 << 20, device="cuda")
del early
x = torch.zeros(2 << 20, device="cuda", requires_grad=True)
unused = torch.zeros(1 << 20, device="cuda")
y = x.exp()
z = y.sigmoid()
z.backward(torch.ones_like(z))
torch.cuda.memory._dump_snapshot("snapshot.pickle")
"""
SMALL = "import torch; torch.zeros(1000, device='cuda')"


def ferry(*words, cwd):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.run([FERRY, *map(str, words)], cwd=cwd, env=environment,
                          capture_output=True, text=True, timeout=300)


class Peak(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "script.py").write_text(SCRIPT)
        cls.done = ferry("run", "--python", PYTHON, "--hide-gpu", "--log", "run.jsonl", "--json",
                         "run.json", "script.py", cwd=cls.path)
        assert cls.done.returncode == 0, cls.done.stderr
        cls.peak = json.loads((cls.path / "run.json").read_text())["peak"]

    def owner(self, line, operator):
        found = [owner for owner in self.peak["owners"]
                 if f"script.py:{line} " in owner["place"] and owner["operator"] == operator]
        self.assertEqual(len(found), 1, self.peak)
        return found[0]

    def test_each_owner_has_its_operator_line_and_bytes(self):
        self.assertEqual(self.owner(6, "aten::zero_")["bytes"], 8 * MIB)
        self.assertEqual(self.owner(8, "aten::exp")["bytes"], 8 * MIB)
        self.assertEqual(self.owner(9, "aten::sigmoid")["bytes"], 8 * MIB)
        self.assertFalse([owner for owner in self.peak["owners"] if ":4 " in owner["place"]])
        self.assertEqual(sum(owner["bytes"] for owner in self.peak["owners"]),
                         self.peak["peak_bytes"])

    def test_what_nothing_uses_again_is_told(self):
        self.assertEqual(self.owner(7, "aten::zero_")["not_used_again_bytes"], 4 * MIB)
        self.assertEqual(self.owner(8, "aten::exp")["not_used_again_bytes"], 0)

    def test_the_end_shows_a_short_table(self):
        lines = self.done.stderr.splitlines()
        begin = next(i for i, line in enumerate(lines) if "by who made it:" in line)
        table = [line for line in lines[begin:] if not line.startswith("ferry run: no GPU")]
        self.assertLessEqual(len(table), 8)
        self.assertTrue(any("aten::exp at script.py:8 in <module>" in line for line in table),
                        table)

    def test_a_small_run_shows_none(self):
        done = ferry("run", "--python", PYTHON, "--hide-gpu", "--json", "small.json", "-c", SMALL,
                     cwd=self.path)
        self.assertNotIn("by who made it", done.stderr)
        peak = json.loads((self.path / "small.json").read_text())["peak"]
        self.assertEqual(peak["owners"][0]["operator"], "aten::zero_")

    def test_the_log_is_explained_in_the_same_way(self):
        explained = ferry("explain", "--json", "run.jsonl", cwd=self.path)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertEqual(json.loads(explained.stdout)["owners"], self.peak["owners"])

    def test_the_snapshot_has_the_same_peak_by_its_stacks(self):
        explained = ferry("explain", "--json", "snapshot.pickle", cwd=self.path)
        self.assertEqual((explained.returncode, explained.stderr), (0, ""))
        snapshot = json.loads(explained.stdout)
        self.assertEqual(snapshot["peak_bytes"], self.peak["peak_bytes"])
        self.assertEqual(snapshot["mismatches"], 0)
        by_line = {owner["line"]: owner for owner in snapshot["owners"] if owner["line"]}
        self.assertEqual((by_line[8]["operator"], by_line[8]["bytes"]), ("exp", 8 * MIB))
        self.assertEqual(by_line[9]["operator"], "sigmoid")
        backward = [owner for owner in snapshot["owners"] if owner["when"] == "backward"]
        self.assertEqual(sum(owner["bytes"] for owner in backward) % (8 * MIB), 0)
        self.assertTrue(any(owner["operator"].endswith("Backward0") for owner in backward),
                        backward)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
