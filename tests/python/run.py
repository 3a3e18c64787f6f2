"""Runs Python's tests, and writes how many there were and which were skipped, with the reason.

    run.py OUT.json [FILTER]    those whose names have FILTER in them
    run.py OUT.json             all, in two processes: one of two cores would have nothing to do

FERRY_PYTHON_PACKAGE: the folder that has the package as it was built, its module included; where
there is none the sources are tested alone.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PARTS = 2


def each_test(suite):
    for each in suite:
        yield from each_test(each) if isinstance(each, unittest.TestSuite) else [each]


def tests_of(part):
    """Of a part whole modules: whichever part has fewest tests so far gets the next one."""
    found = unittest.defaultTestLoader.discover(str(HERE), pattern="*test*.py")
    if part is None:
        return found
    modules = {}
    for test in each_test(found):
        modules.setdefault(type(test).__module__, unittest.TestSuite()).addTest(test)
    parts = [unittest.TestSuite() for _ in range(PARTS)]
    for suite in sorted(modules.values(), key=lambda suite: -suite.countTestCases()):
        min(parts, key=unittest.TestSuite.countTestCases).addTest(suite)
    return parts[part]


def run(out, part=None):
    result = unittest.TextTestRunner(verbosity=0, buffer=True).run(tests_of(part))
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    pathlib.Path(out).write_text(json.dumps({
        "tests": result.testsRun, "failed": failed,
        "skipped": [(test.id(), reason) for test, reason in result.skipped]}) + "\n")
    return 1 if failed or not result.testsRun else 0


def run_in_parts(out):
    outs = [pathlib.Path(f"{out}.{part}") for part in range(PARTS)]
    for each in outs:
        each.unlink(missing_ok=True)
    children = [subprocess.Popen([sys.executable, __file__, each, "--part", str(part)],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for part, each in enumerate(outs)]
    for child in children:
        print(child.communicate()[0], end="", file=sys.stderr, flush=True)
    told = [json.loads(each.read_text()) for each in outs if each.exists()]
    if len(told) < PARTS:  # it crashed
        print("a part of the tests came to no end", file=sys.stderr)
        return 1
    pathlib.Path(out).write_text(json.dumps(
        {key: sum((each[key] for each in told), start=type(told[0][key])()) for key in told[0]})
        + "\n")
    return max(child.returncode for child in children)


def main(out, *words):
    built = os.environ.get("FERRY_PYTHON_PACKAGE", "")
    package = built if os.path.isdir(built) else str(HERE.parents[1] / "python")
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = package  # for the processes that tests start
    if not words:
        return run_in_parts(out)
    if words[0] == "--part":
        return run(out, int(words[1]))
    unittest.defaultTestLoader.testNamePatterns = [f"*{words[0]}*"]
    return run(out)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
