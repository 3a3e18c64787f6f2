"""`pytest --ferry`: each test's use of CUDA is judged by itself.

    pytest_test.py FERRY PYTHON PACKAGES
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

FERRY, PYTHON, PACKAGES = sys.argv[1:4]
TESTS = pathlib.Path(__file__).parent / "programs" / "tests"


def pytest(*words, environment=()):
    changed = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=PACKAGES, FERRY_PROGRAM=FERRY,
                   PYTHONDONTWRITEBYTECODE="1") | dict(environment)
    return subprocess.run([PYTHON, "-m", "pytest", "-p", "pytest_ferry", "-p", "no:cacheprovider",
                           "--ferry-run=--hide-gpu --eager", *map(str, words)],
                          env=changed, capture_output=True, text=True, timeout=300, cwd=TESTS)


def line_of(file, mark):
    lines = (TESTS / file).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.xml"
            cls.logs = pathlib.Path(folder) / "logs"
            cls.done = pytest("--ferry", "--ferry-logs", cls.logs, "--junitxml", file)
            assert file.exists(), cls.done.stdout + cls.done.stderr
            cls.cases = {case.get("name"): case
                         for case in xml.etree.ElementTree.parse(file).iter("testcase")}
            cls.checked = {log.name.rpartition("test_streams.py_")[2]:
                           subprocess.run([FERRY, "check", log], capture_output=True).returncode
                           for log in cls.logs.iterdir() if log.stat().st_size > 0}

    def outcome(self, name):
        found = [child.tag for child in self.cases[name] if not child.tag.startswith("system")]
        return found[0] if found else "passed"

    def test_each_test_has_the_verdict_on_itself(self):
        outcomes = {name: self.outcome(name) for name in self.cases}
        self.assertEqual(outcomes, {
            "test_clean": "passed",
            "test_racing": "failure",
            "test_clean_after_the_racing_one": "passed",
            "test_clean_with_what_an_earlier_test_left": "passed",
            "test_failing": "failure",
            "test_failing_and_racing": "failure",
            "test_racing_as_expected": "skipped",  # as JUnit calls what was expected to fail
            "test_skipped": "skipped",
            "test_without_cuda": "passed",
            "test_whose_child_asks_for_a_device": "passed",
            "test_racing_at_its_end": "error",
        }, self.done.stdout)
        self.assertEqual(self.done.returncode, 1)
        self.assertIn("8 tests used the virtual GPU, 4 of them not in a safe order",
                      self.done.stdout)

    def test_what_was_not_judged_is_told_at_the_end(self):
        self.assertIn("not judged: the child processes of 1 tests", self.done.stdout)
        self.assertTrue(self.done.stderr.splitlines()[-1].endswith(
            "8 of 11 parts used CUDA and were judged by themselves, all else: 0 operations on 0 "
            "streams: 0 violations; not judged: a child process asked for a device, which it does "
            "not have"), self.done.stderr)

    def test_a_race_is_reported_at_both_lines_with_its_fix(self):
        report = self.cases["test_racing"].find("failure").get("message")
        places = re.findall(r"at \S+/(\w+\.py):(\d+) in (\w+)", report)
        self.assertEqual(places, [
            ("test_streams.py", str(line_of("test_streams.py", "the use")), "test_racing"),
            ("conftest.py", str(line_of("conftest.py", "the fill")), "fill")])
        self.assertIn("fix: record an event on stream", report)

    def test_a_test_that_fails_by_itself_keeps_its_reason(self):
        failing = self.cases["test_failing"].find("failure").text
        self.assertIn("assert 512.0 == 0", failing)
        self.assertNotIn("safe order", failing)
        both = self.cases["test_failing_and_racing"].find("failure").text
        self.assertIn("a reason of its own", both)
        section = self.done.stdout.split("test_failing_and_racing ___")[1].split("\n____")[0]
        self.assertIn("the streams are not in a safe order", section)

    def test_the_logs_that_are_kept_have_ferry_checks_verdict(self):
        wrong = {name for name, code in self.checked.items() if code != 0}
        self.assertEqual(wrong, {f"{name}.jsonl" for name in (
            "test_racing", "test_failing_and_racing", "test_racing_as_expected",
            "test_racing_at_its_end")})
        self.assertIn("test_clean.jsonl", self.checked)


class Launch(unittest.TestCase):
    def test_clean_tests_pass(self):
        done = pytest("--ferry", "-k", "test_clean")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("3 passed", done.stdout)

    def test_without_the_option_nothing_is_done(self):
        done = pytest("-k", "without_cuda")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("virtual GPU", done.stdout + done.stderr)

    def test_a_program_that_is_not_there_is_a_usage_error(self):
        done = pytest("--ferry", environment={"FERRY_PROGRAM": "/nowhere/ferry"})
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("/nowhere/ferry: expected the program ferry", done.stderr)

    def test_what_is_collected_is_judged_too(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "test_module.py"
            file.write_text("import torch\n"
                            "x = torch.ones(8, device='cuda')\n"
                            "with torch.cuda.stream(torch.cuda.Stream()):\n"
                            "    y = x + 1\n"
                            "def test_nothing():\n"
                            "    pass\n")
            done = pytest("--ferry", "--rootdir", folder, file)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("1 passed", done.stdout)
        self.assertIn("test_module.py:4", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
