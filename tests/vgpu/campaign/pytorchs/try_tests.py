"""PyTorch's tests (conftest.py), each judged by itself, under each schedule."""

import collections
import os
import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree

from judged import SCHEDULES

HERE = pathlib.Path(__file__).parent
HEAD = ("area", "PyTorch's", "ours", *(" ".join(schedule) or "default" for schedule in SCHEDULES))


def areas():
    """{area: (tests of PyTorch's, ours)}, as they are written."""
    found = {}
    for file in sorted(HERE.glob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        theirs = len(re.findall(r"^# PyTorch: test_\w+\n(?:@.*\n)*def test_", text, re.M))
        found[file.stem.removeprefix("test_")] = theirs, text.count("\ndef test_") - theirs
    return found


def run(tools, schedule):
    """(the tests' elements, what was printed, whether pytest was content)"""
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(tools.plugin),
                       FERRY_PROGRAM=tools.ferry, PYTHONDONTWRITEBYTECODE="1")
    options = ("--no-timed",) if schedule else ()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "results.xml"
        done = subprocess.run(
            [tools.python, "-m", "pytest", "-p", "pytest_ferry", "-p", "no:cacheprovider", "-q",
             "--ferry", f"--ferry-run={' '.join(('--hide-gpu', *schedule))}", *options,
             "--junitxml", file, "."],
            cwd=HERE, env=environment, capture_output=True, text=True, timeout=600, check=False)
        tests = list(xml.etree.ElementTree.parse(file).iter("testcase")) if file.exists() else []
    return tests, done.stdout + done.stderr, done.returncode == 0


def faults_of(schedule, tests, printed, content):
    name = " ".join(schedule) or "default"
    if not content:
        yield f"PyTorch's tests, {name}:\n{printed}"
    names = {test.get("name").partition("[")[0] for test in tests}
    if len(names) != sum(map(sum, areas().values())):
        yield f"PyTorch's tests, {name}: not all were there"
    for test in tests:
        skipped = test.find("skipped")
        if skipped is not None and (not schedule or "how far" not in skipped.get("message")):
            yield f"{test.get('name')}, {name}: left out: {skipped.get('message')}"


def passed(tests):
    """{area: tests that passed}, each form of a test counted."""
    return collections.Counter(test.get("classname").rpartition("test_")[2] for test in tests
                               if not any(test.find(tag) is not None
                                          for tag in ("failure", "error", "skipped")))


def try_all(tools, names, pool):
    chosen = [each for each in SCHEDULES
              if not names or (" ".join(each).strip("-") or "default") in names]
    runs = list(pool.map(lambda schedule: run(tools, schedule), chosen))
    faults = [fault for schedule, each in zip(chosen, runs) for fault in faults_of(schedule, *each)]
    counts = {schedule: passed(each[0]) for schedule, each in zip(chosen, runs)}
    for area, (theirs, ours) in areas().items():
        each = (str(counts[schedule][area]) if schedule in counts else "" for schedule in SCHEDULES)
        yield (area, str(theirs), str(ours), *each), faults
        faults = []
