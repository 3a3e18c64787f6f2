"""The closing lines of `./dev test`: how many tests ran, and which did not, and why.

    closing_lines.py CTEST.xml [PYTHON.json] [--lacks NAME]...

CTEST.xml is ctest's (--output-junit), PYTHON.json is tests/python/run.py's. A test that is skipped
says why: "no GPU: ...", "no data: ..." (data that the repository does not have), or "no NAME: ..."
for what --lacks names. Skipped for any other reason it is a test that runs nowhere: exit 1.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

LACKING = {"GPU": "need a GPU", "data": "need data from outside the repository"}
# As GoogleTest's brief printer has it, and as a program of ours that exits with 77.
REASON = re.compile(r"^\S+:\d+: Skipped\n(.*)$|^skipped: (.*)$", re.MULTILINE)


def of_ctest(path):
    """(how many tests, those of them that failed, the reasons of what was skipped)."""
    cases = xml.parse(path).getroot().findall("testcase")
    failed, skipped = 0, []
    for case in cases:
        reasons = [a or b for a, b in REASON.findall(case.findtext("system-out") or "")]
        if case.get("status") != "run" and case.find("skipped") is None:
            failed += 1
        elif case.find("skipped") is not None and not reasons:
            reasons = ["it does not say why"]
        skipped += [(case.get("name"), reason) for reason in reasons]
    return len(cases), failed, skipped


def kind_of(reason):
    """What it needs that is not here; none where it could have run."""
    match = re.match(r"no (\w+)\b", reason)
    return match and match[1]


def lines(counts, skipped, lacking):
    """The lines to print, and whether each skipped test may be."""
    for name, total, failed in counts:
        yield f"{total} tests of {name}'s, {failed} failed" if failed else (
            f"{total} tests of {name}'s"), True
    of_kind = collections.defaultdict(list)
    for name, reason in skipped:
        of_kind[kind_of(reason) if kind_of(reason) in lacking else None].append((name, reason))
    for kind, needs in lacking.items():
        yield f"skipped, since they {needs}: {len(of_kind[kind])}", True
        for name, reason in of_kind[kind]:
            yield f"  {name}: {reason}", True
    for name, reason in of_kind[None]:
        yield f"skipped, and no test may be for this: {name}: {reason}", False


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("ctest", type=pathlib.Path)
    parser.add_argument("python", type=pathlib.Path, nargs="?")
    parser.add_argument("--lacks", action="append", default=[])
    options = parser.parse_args(arguments)
    total, failed, skipped = of_ctest(options.ctest)
    counts = [("ctest", total, failed)]
    if options.python:
        told = json.loads(options.python.read_text())
        counts.append(("Python", told["tests"], told["failed"]))
        skipped += [tuple(each) for each in told["skipped"]]
    lacking = LACKING | {name: f"need {name}" for name in options.lacks}
    right = not any(failed for _, _, failed in counts)
    for line, may in lines(counts, skipped, lacking):
        print(line)
        right = right and may
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
