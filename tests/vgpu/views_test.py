"""What the host does with page-locked memory past the operators is judged, or said to be unjudged.

    views_test.py FERRY PYTHON PACKAGES
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON, PACKAGES = sys.argv[1:4]
TESTS = pathlib.Path(__file__).parent / "programs" / "views"

HOLDS_AN_ARRAY = """
import torch
host = torch.zeros(64, pin_memory=True)
view = host.numpy()  # line 4
for _ in range(2):
    host.copy_(torch.ones(64, device="cuda"), non_blocking=True)  # line 6
    torch.cuda.synchronize()
other = torch.zeros(64, pin_memory=True)
print(view.sum(), other.numpy().sum())
"""


def environment():
    return dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=PACKAGES, FERRY_PROGRAM=FERRY,
                PYTHONDONTWRITEBYTECODE="1")


def run(code, *options):
    words = [FERRY, "run", "--python", PYTHON, "--hide-gpu", *map(str, options)]
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.py"
        script.write_text(code)
        return subprocess.run([*words, script], env=environment(), capture_output=True, text=True,
                              timeout=300)


def check(log):
    done = subprocess.run([FERRY, "check", "--json", log], capture_output=True, text=True)
    return json.loads(done.stdout)


def outcome(verdict):
    if verdict["violations"]:
        return "races"
    return "unjudged" if verdict["unjudged_views"] else "judged"


class EachAccess(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            words = [PYTHON, "-m", "pytest", "-p", "pytest_ferry", "-p", "no:cacheprovider",
                     "--ferry", "--ferry-run=--hide-gpu --eager", "--ferry-logs", folder, "-rA",
                     "--rootdir", TESTS]
            cls.done = subprocess.run(words, env=environment(), capture_output=True, text=True,
                                      timeout=500, cwd=TESTS)
            logs = {log.stem.partition("test_views.py_test_")[2]: log
                    for log in pathlib.Path(folder).iterdir() if log.stat().st_size > 0}
            cls.verdicts = {name: check(log) for name, log in logs.items()}

    def test_each_has_the_verdict_that_its_name_says(self):
        self.assertGreater(len(self.verdicts), 30, self.done.stdout + self.done.stderr)
        self.assertEqual({name: outcome(verdict) for name, verdict in self.verdicts.items()},
                         {name: name.partition("_")[0] for name in self.verdicts})

    def test_pytest_fails_what_races_and_says_what_it_did_not_judge(self):
        names = re.findall(r"^(PASSED|FAILED) test_views\.py::test_(\w+?)_", self.done.stdout, re.M)
        self.assertEqual(set(names), {("FAILED", "races"), ("PASSED", "unjudged"),
                                      ("PASSED", "judged")}, self.done.stdout)
        unjudged = sum(verdict["unjudged_views"] > 0 for verdict in self.verdicts.values())
        self.assertIn(f"not judged: what the host did in {unjudged} tests through views",
                      self.done.stdout)
        self.assertRegex(self.done.stderr.splitlines()[-1],
                         rf"not judged: the views of page-locked memory that the host had in "
                         rf"{unjudged} parts")
        part = self.done.stdout.split("test_unjudged_array_that_is_older_than_the_copy ___")[1]
        lines = (TESTS / "test_views.py").read_text().splitlines()
        line = next(i for i, text in enumerate(lines, 1) if text.endswith("# the copy"))
        self.assertRegex(part.split("\n____")[0],
                         rf"not judged: numpy at \S+test_views\.py:{line - 1} in test_unjudged\S+ "
                         rf"\(line \d+\): .*copy at \S+test_views\.py:{line} in ")

    def test_the_loaders_memory_is_never_handed_out(self):
        self.assertEqual(self.verdicts["judged_batches_of_a_loader"]["views"], 0)
        self.assertEqual(self.verdicts["judged_once_the_result_is_there_numpy_"]["views"], 2)


class LastLine(unittest.TestCase):
    def test_a_view_that_is_held_over_a_copy_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            verdict, log = (pathlib.Path(folder) / name for name in ("v.json", "run.jsonl"))
            done = run(HOLDS_AN_ARRAY, "--require-judged", "--json", verdict, "--log", log)
            said = json.loads(verdict.read_text())
            checked = check(log)
            text = subprocess.run([FERRY, "check", log], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (8, "64.0 0.0\n"), done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1],
                         r": 0 violations, in \S+; not judged: what the host did through 1 view of "
                         r"page-locked memory \(.*\) while work on it was pending$")
        self.assertEqual((said["run"]["judged"], said["views"], said["unjudged_views"]),
                         ("in part", 2, 1))
        self.assertEqual(said["unjudged"], checked["unjudged"])
        [unjudged] = said["unjudged"]
        self.assertEqual((unjudged["view"]["line"], unjudged["operation"]["line"]), (4, 6))
        self.assertIn(unjudged["message"], done.stderr)
        self.assertEqual(text.returncode, 0)
        self.assertTrue(text.stdout.endswith(" 0 violations, 1 view not judged\n"), text.stdout)

    def test_it_is_no_error_where_nobody_asks(self):
        self.assertEqual(run(HOLDS_AN_ARRAY).returncode, 0)

    def test_views_that_no_work_met_are_not_mentioned(self):
        with tempfile.TemporaryDirectory() as folder:
            verdict = pathlib.Path(folder) / "v.json"
            code = HOLDS_AN_ARRAY.replace(", non_blocking=True", "")
            done = run(code, "--require-judged", "--json", verdict)
            self.assertEqual(json.loads(verdict.read_text())["run"]["judged"], "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stderr.endswith(": 0 violations\n"), done.stderr)

    def test_a_list_that_is_read_too_early_is_a_race_under_every_schedule(self):
        code = ("import torch\n"
                "host = torch.zeros(64, pin_memory=True)\n"
                "host.copy_(torch.ones(64, device='cuda'), non_blocking=True)\n"
                "print(sum(host.tolist()))\n")
        values = set()
        for schedule in ("--eager", "--side-first"):
            done = run(code, schedule)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"tolist at \S+script\.py:4 in <module> on the host")
            values.add(done.stdout)
        self.assertEqual(values, {"64.0\n", "0.0\n"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
