"""Runs Python's tests, and writes how many there were and which were skipped, with the reason.

    run.py OUT.json [FILTER]    those whose names have FILTER in them

FERRY_PYTHON_PACKAGE: the folder that has the package as it was built, its module included; where
there is none the sources are tested alone.
"""

import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def main(out, only=None):
    built = os.environ.get("FERRY_PYTHON_PACKAGE", "")
    package = built if os.path.isdir(built) else str(HERE.parents[1] / "python")
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = package  # for the processes that tests start
    if only:
        unittest.defaultTestLoader.testNamePatterns = [f"*{only}*"]
    suite = unittest.defaultTestLoader.discover(str(HERE), pattern="*test*.py")
    result = unittest.TextTestRunner(verbosity=0, buffer=True).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    pathlib.Path(out).write_text(json.dumps({
        "tests": result.testsRun, "failed": failed,
        "skipped": [(test.id(), reason) for test, reason in result.skipped]}) + "\n")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
