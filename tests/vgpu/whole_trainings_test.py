"""`ferry run --no-values` against a table of whole trainings' memory, in many settings.

    whole_trainings_test.py FERRY PYTHON [ROW…]        rows by their ids; all where none is named

The table (FERRY_MEMORY_TABLE) was measured by PyTorch 2.11's own host code over a CUDA runtime
whose launches did nothing and whose addresses went up; without it nothing is compared. A figure is
equal, or off by little; TRL's rows keep less after forward than the table says, for a reason that
is not known, and have its peaks. Prints each row and its largest differences; fails where one is
beyond what is allowed.
"""

import csv
import json
import os
import pathlib
import subprocess
import sys

FERRY, PYTHON = sys.argv[1:3]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(os.environ.get(
    "FERRY_MEMORY_TABLE", ROOT.parent / "shared/data/training-memory/shared.csv"))
PROGRAM = pathlib.Path(__file__).parent / "programs/whole_training.py"
CARDS = {"90": "h200", "80": "a100"}
STEPS = 4
ALLOWED = 0.01
ALLOWED_AFTER_TRLS_FORWARD = 0.06


def steps_of(row):
    command = [FERRY, "run", "--python", PYTHON, "--hide-gpu", "--no-values", "--zeros",
               "--segments-go-up", "--card", CARDS[row["sm"]], str(PROGRAM), json.dumps(row),
               str(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(steps) != STEPS:
        print(f"FAILED {row['id']}: exit {done.returncode}\n{done.stderr}", flush=True)
        return []
    return steps


def differences(row, steps):
    """(relative, figure) of each that is not equal, the largest first."""
    for number, step in enumerate(steps, 1):
        for name, seen in step.items():
            expected = int(row[f"{name}_{number}"])
            if seen != expected:
                yield seen / expected - 1, f"{name}_{number}"


def allowed(row, figure):
    trl = row["offload"] != "off" and figure.startswith("fwd_end")
    return ALLOWED_AFTER_TRLS_FORWARD if trl else ALLOWED


def main():
    if not TABLE.exists():
        print(f"skipped: there is no {TABLE}")
        return
    with TABLE.open() as lines:
        rows = list(csv.DictReader(lines))
    if sys.argv[3:]:
        rows = [row for row in rows if row["id"] in sys.argv[3:]]
    failed, figures, equal = 0, 0, 0
    for row in rows:
        steps = steps_of(row)
        off = sorted(differences(row, steps), key=lambda each: -abs(each[0]))
        figures += sum(map(len, steps))
        equal += sum(map(len, steps)) - len(off)
        beyond = [each for each in off if abs(each[0]) > allowed(row, each[1])]
        failed += bool(beyond) or not steps
        if not steps:
            continue
        what = " ".join(row[name] for name in ("id", "model", "prec", "opt", "ckpt", "offload"))
        print(f"{'FAILED ' if beyond else ''}{what} accum {row['accum']} drop {row['drop']}: " +
              (", ".join(f"{name} {100 * by:+.2f} %" for by, name in off[:4]) or "equal"),
              flush=True)
    print(f"{len(rows)} rows, {figures} figures: {equal} equal to the byte")
    sys.exit(1 if failed else 0)


main()
