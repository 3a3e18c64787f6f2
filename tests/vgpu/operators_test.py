"""The sweep of operators: PyTorch's own sample calls on the virtual GPU, held to the CPU.

    operators_test.py FERRY PYTHON [--stride N] [--samples N] [--table FILE]

operators.txt lists what is not right, each with its verdict (programs/operators.py says what they
are). Fails for what is worse than it is listed, for an operator that ends the process, and, where
all operators and all samples are called, for what is better than listed, and for less than 95 %
that are right. The table has a line for each operator that is not right to the bit.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
VERDICTS = ("right", "in kind", "close", "unchecked", "refused", "wrong")
RIGHT = VERDICTS[:3]
PER_CENT = 95


def read_list(path):
    """Operator: verdict."""
    lines = [line.split(" | ") for line in path.read_text().splitlines()
             if line and not line.startswith("#")]
    return {name: verdict for verdict, name, _ in lines}


def sweep(options):
    """[number, name, verdict, why, samples] of each; begun again behind one that ends a process."""
    rows, first, found = [], 0, []
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    while True:
        command = [options.ferry, "run", "--hide-gpu", "--eager", "--python", options.python,
                   HERE / "programs" / "operators.py", first, options.stride, options.samples]
        done = subprocess.run([str(word) for word in command], env=environment, text=True,
                              capture_output=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        rows += [line for line in found if len(line) == 5]
        if not found or found[-1][0] == "done":
            break
        number, name, *_ = found[-1]
        if len(found[-1]) == 3:
            rows.append([number, name, "wrong", "it ended the process", 0])
        first = number + options.stride
    if not found or done.returncode:
        sys.exit(f"the sweep ended with {done.returncode}: {done.stderr[-2000:]}")
    return rows, found[-1][1]


def faults_of(rows, listed, whole):
    for _, name, verdict, why, _ in rows:
        allowed = listed.get(name, "close")
        if VERDICTS.index(verdict) > VERDICTS.index(allowed):
            yield f"{name} is {verdict}, and not listed so: {why}"
        if whole and name in listed and verdict != allowed:
            yield f"{name} is {verdict}, and listed as {allowed}"
    if not whole:
        return
    for name in sorted(listed.keys() - {row[1] for row in rows}):
        yield f"{name} is listed, and there is no such operator"
    right = sum(row[2] in RIGHT for row in rows)
    if 100 * right < PER_CENT * len(rows):
        yield f"{right} of {len(rows)} are right: fewer than {PER_CENT} %"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ferry")
    parser.add_argument("python")
    parser.add_argument("--stride", type=int, default=1, help="of the operators")
    parser.add_argument("--samples", type=int, default=0, help="of each at most; 0: all")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    rows, there_are = sweep(options)
    whole = options.stride == 1 and options.samples == 0
    if len(rows) != len(range(0, there_are, options.stride)):
        sys.exit(f"{len(rows)} operators were called of {there_are}, each {options.stride}th")
    counts = collections.Counter(row[2] for row in rows)
    table = [f"{verdict} | {name} | {why}" for verdict in VERDICTS[1:]
             for _, name, found, why, _ in rows if found == verdict]
    if options.table:
        options.table.write_text("\n".join(table) + "\n")
    faults = list(faults_of(rows, read_list(HERE / "operators.txt"), whole))
    for fault in faults:
        print(fault)
    print(f"{len(rows)} operators, {sum(row[4] for row in rows)} samples: "
          + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
          + f"; faults: {len(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
