"""Runs Python's tests, and writes how many there were and which were skipped, with the reason.

    run.py OUT.json [FILTER]    those whose names have FILTER in them
    run.py OUT.json             all, in two processes that share the modules out between them

FERRY_PYTHON_PACKAGE: the folder that has the package as it was built, its module included; where
there is none the sources are tested alone.
"""

import fcntl
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


def modules():
    """Returns the tests of each module, those with most tests first."""
    found = {}
    for test in each_test(unittest.defaultTestLoader.discover(str(HERE), pattern="*test*.py")):
        found.setdefault(type(test).__module__, unittest.TestSuite()).addTest(test)
    return sorted(found.values(), key=lambda suite: -suite.countTestCases())


def shared(suites, counter):
    """Runs one suite after another, each in one of the processes that share the counter's file."""
    def run_those_left(result):
        while True:
            with open(counter, "r+", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                index = int(file.read())
                file.seek(0)
                file.write(str(index + 1))
            if index >= len(suites):
                return
            suites[index](result)
    return run_those_left


def run(out, tests):
    result = unittest.TextTestRunner(verbosity=0, buffer=True).run(tests)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    pathlib.Path(out).write_text(json.dumps({
        "tests": result.testsRun, "failed": failed,
        "skipped": [(test.id(), reason) for test, reason in result.skipped]}) + "\n")
    return 1 if failed else 0


def run_in_parts(out):
    outs = [pathlib.Path(f"{out}.{part}") for part in range(PARTS)]
    for each in outs:
        each.unlink(missing_ok=True)
    counter = pathlib.Path(f"{out}.next")
    counter.write_text("0", encoding="ascii")
    children = [subprocess.Popen([sys.executable, __file__, each, "--share", counter],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for each in outs]
    for child in children:
        print(child.communicate()[0], end="", file=sys.stderr, flush=True)
    told = [json.loads(each.read_text()) for each in outs if each.exists()]
    if len(told) < PARTS:  # it crashed
        print("a part of the tests came to no end", file=sys.stderr)
        return 1
    both = {key: sum((each[key] for each in told), start=type(told[0][key])()) for key in told[0]}
    pathlib.Path(out).write_text(json.dumps(both) + "\n")
    return max(child.returncode for child in children) or int(both["tests"] == 0)


def main(out, *words):
    built = os.environ.get("FERRY_PYTHON_PACKAGE", "")
    package = built if os.path.isdir(built) else str(HERE.parents[1] / "python")
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = package  # for the processes that tests start
    if not words:
        return run_in_parts(out)
    if words[0] == "--share":
        return run(out, shared(modules(), words[1]))
    unittest.defaultTestLoader.testNamePatterns = [f"*{words[0]}*"]
    found = unittest.TestSuite(modules())
    return run(out, found) or int(found.countTestCases() == 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
