"""The closing lines of `./dev test` name each test that did not run, and let none hide."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import closing_lines  # noqa: E402

PASSED = '<testcase name="{}" status="run"><system-out>{}</system-out></testcase>'
SKIPPED = ('<testcase name="{}" status="notrun"><skipped message=""/>'
           '<system-out>{}</system-out></testcase>')
FAILED = '<testcase name="{}" status="fail"><failure/><system-out>{}</system-out></testcase>'


class ClosingLines(unittest.TestCase):
    def closed(self, *cases, python=None, lacks=()):
        """(exit status, what was printed)"""
        with tempfile.TemporaryDirectory() as folder:
            ctest = pathlib.Path(folder, "ctest.xml")
            ctest.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            arguments = [str(ctest)]
            if python:
                pathlib.Path(folder, "python.json").write_text(json.dumps(python))
                arguments.append(str(pathlib.Path(folder, "python.json")))
            for name in lacks:
                arguments += ["--lacks", name]
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = closing_lines.main(arguments)
            return status, out.getvalue()

    def test_where_all_ran(self):
        self.assertEqual(self.closed(PASSED.format("a", ""), PASSED.format("b", "fine")), (0, (
            "2 tests of ctest's\n"
            "skipped, since they need a GPU: 0\n"
            "skipped, since they need data from outside the repository: 0\n")))

    def test_what_needs_a_gpu_and_what_needs_data_are_counted_apart(self):
        status, text = self.closed(
            SKIPPED.format("gpu", "skipped: no GPU: none is visible"),
            PASSED.format("x", "a.cpp:7: Skipped\nno GPU: there is one, this needs two\n"),
            python={"tests": 9, "failed": 0,
                    "skipped": [["test.t", "no data: there is no corpus"]]})
        self.assertEqual(status, 0)
        self.assertEqual(text, (
            "2 tests of ctest's\n9 tests of Python's\n"
            "skipped, since they need a GPU: 2\n"
            "  gpu: no GPU: none is visible\n"
            "  x: no GPU: there is one, this needs two\n"
            "skipped, since they need data from outside the repository: 1\n"
            "  test.t: no data: there is no corpus\n"))

    def test_a_test_that_could_have_run_is_an_error(self):
        for case in (PASSED.format("x", "a.cpp:7: Skipped\nthis world cannot tell\n"),
                     SKIPPED.format("x", ""),
                     SKIPPED.format("x", "skipped: no torch: it is not built with it")):
            status, text = self.closed(case)
            self.assertEqual(status, 1, text)
            self.assertIn("no test may be for this: x: ", text)

    def test_unless_the_build_lacks_it(self):
        python = {"tests": 1, "failed": 0, "skipped": [["t", "no torch: there is none"]]}
        self.assertEqual(self.closed(python=python)[0], 1)
        status, text = self.closed(python=python, lacks=["torch"])
        self.assertEqual(status, 0)
        self.assertIn("skipped, since they need torch: 1\n  t: no torch: there is none\n", text)

    def test_what_failed_is_counted(self):
        status, text = self.closed(FAILED.format("x", ""), PASSED.format("y", ""))
        self.assertEqual(status, 1)
        self.assertIn("2 tests of ctest's, 1 failed\n", text)


if __name__ == "__main__":
    unittest.main()
