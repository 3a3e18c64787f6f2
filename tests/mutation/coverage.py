"""Shows which lines and branches of the core random programs execute.

    coverage.py [--folder BUILD] [--programs N] [--seed S] [--missed]

Builds hunt.cpp with the compiler's counters in shared only, runs the core without a mutant on this
many programs, and prints a table by file. --missed also lists each line that no program executes,
and each branch that none takes. Branches for exceptions that any call may throw are not counted. A
branch of a template counts as taken if one instance takes it.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/coverage")
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missed", action="store_true")
    return parser.parse_args()


def built(folder):
    """Builds the program, and removes old counts."""
    flags = f"-w -O0 -g0 --coverage -fprofile-filter-files={ROOT}/shared/.*"
    run(["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DFERRY_TORCH=OFF",
         "-DFERRY_BENCH=OFF", "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={flags}"])
    run(["ninja", "-C", str(folder), "ferry_mutation_hunt"])
    for counts in folder.rglob("*.gcda"):
        counts.unlink()
    return next(p for p in folder.rglob("ferry_mutation_hunt") if os.access(p, os.X_OK))


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"coverage: {' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Counts:
    """The counts of all compiled sources, by file and line of shared."""

    def __init__(self, folder):
        self.lines = collections.defaultdict(lambda: collections.defaultdict(int))
        # Counts of each branch, by (line, number of branches that an instance has there).
        self.branches = collections.defaultdict(lambda: collections.defaultdict(list))
        for counts in sorted(folder.rglob("*.gcda")):
            told = run(["gcov", "--json-format", "--branch-probabilities", "--stdout",
                        str(counts)], cwd=folder)
            for file in json.loads(told)["files"]:
                name = re.search(r"(?:^|/)(shared/.*)", os.path.normpath(file["file"]))
                if name:
                    self.add(name[1], file["lines"])

    def add(self, name, lines):
        for line in lines:
            number = line["line_number"]
            self.lines[name][number] += line["count"]
            taken = [b["count"] for b in line["branches"] if not b["throw"]]
            if len(taken) < 2:
                continue
            known = self.branches[name][number, len(taken)]
            known[:] = [a + b for a, b in zip(known or [0] * len(taken), taken)]

    def missed(self, name):
        """(line, what was missed) of a file, in order."""
        found = [(line, "no random program executes it") for line, count in self.lines[name].items()
                 if not count]
        for (line, _), taken in self.branches[name].items():
            if self.lines[name][line] and 0 in taken:
                found.append((line, f"{taken.count(0)} of {len(taken)} branches are never taken"))
        return sorted(set(found))


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def row(name, lines, branches):
    ran, taken = sum(map(bool, lines)), sum(map(bool, branches))
    return (f"| {name} | {len(lines)} | {percent(ran, len(lines))} | {len(branches)} | "
            f"{percent(taken, len(branches))} |")


def main():
    options = arguments()
    program = built(options.folder)
    numbers = "".join(f"{number}\n" for number in range(options.programs))
    run([str(program), str(options.seed), "0"], input=numbers)
    counts = Counts(options.folder)
    print("| file | lines | executed | branches | taken |\n|---|---|---|---|---|")
    every_line, every_branch = [], []
    for name in sorted(counts.lines):
        lines = list(counts.lines[name].values())
        branches = [count for taken in counts.branches[name].values() for count in taken]
        every_line += lines
        every_branch += branches
        print(row(f"`{name.removeprefix('shared/')}`", lines, branches))
    print(row("all", every_line, every_branch))
    if options.missed:
        for name in sorted(counts.lines):
            for line, what in counts.missed(name):
                text = (ROOT / name).read_text().splitlines()[line - 1].strip()
                print(f"{name}:{line}: {what}: {text}")


if __name__ == "__main__":
    main()
