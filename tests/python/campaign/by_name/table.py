"""What `ferry plan` says of a model by its name, beside the library's own Trainer.

    table.py [NAME…] --ferry FERRY [--output FILE]     all configurations where none is named

For each configuration of decoders.py and others.py, `ferry plan config.json --policy keep` plans
the training, and trained.py trains it with `ferry run --no-values`: both on a simulated card, with
the same batch. Prints a table with the peaks of allocated and of reserved memory. The seconds are
those of the plan, whose capture is not cached, and of the run.

Exit codes: 0 every peak is within 1 % of the Trainer's, 1 one is not or did not run.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from campaign.by_name.decoders import DECODERS
from campaign.by_name.others import OTHERS

CARD = "h200"
BAR = 0.01
HEAD = ("| model | tokens × batch | allocated | Trainer | | reserved | Trainer | | plan | run |\n"
        "|---|---|---|---|---|---|---|---|---|---|")


class Failed(Exception):
    pass


def planned(ferry, name, size, batch, contents):
    """Returns (peaks, seconds) of the plan."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps({**contents, "_name_or_path": name}))
        printed, seconds = _ran(
            [ferry, "plan", path, "--card", CARD, "--policy", "keep", "--tokens", str(size),
             "--batch", str(batch), "--json"], XDG_CACHE_HOME=folder, FERRY_PYTHON=sys.executable)
    row, = json.loads(printed)["rows"]
    return {key: row[f"device_{field}_bytes"] for key, field in (
        ("allocated", "peak"), ("reserved", "reserved"))}, seconds


def trained(ferry, name):
    """Returns (peaks, seconds) of the training."""
    printed, seconds = _ran([ferry, "run", "--python", sys.executable, "--hide-gpu", "--no-values",
                             "--zeros", "--card", CARD, HERE / "trained.py", name])
    peaks = next(line for line in printed.splitlines() if line.startswith('{"'))
    return json.loads(peaks), seconds


def _ran(words, **environment):
    begun = time.monotonic()
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=1800,
                         env={**os.environ, **environment})
    if ran.returncode not in (0, 3):  # 3: nothing fits
        said = [line for line in ran.stderr.splitlines()
                if re.match(r"([\w.]*(Error|Exception)|ferry):? ", line)]
        raise Failed((said or ran.stderr.splitlines()[-1:] or [f"exit {ran.returncode}"])[0])
    return ran.stdout, time.monotonic() - begun


def row(ferry, name):
    """Returns (a line of the table, the largest difference)."""
    size, batch, contents = {**DECODERS, **OTHERS}[name]
    begin = f"| {name} | {size} × {batch} |"
    try:
        said, plan_seconds = planned(ferry, name, size, batch, contents)
        seen, run_seconds = trained(ferry, name)
    except (Failed, subprocess.TimeoutExpired) as error:
        return f"{begin} {error} |", None
    off = {key: said[key] / seen[key] - 1 for key in seen}
    cells = " | ".join(f"{_mebibytes(said[key])} | {_mebibytes(seen[key])} | {100 * by:+.2f} %"
                       for key, by in off.items())
    return f"{begin} {cells} | {plan_seconds:.0f} s | {run_seconds:.0f} s |", max(
        map(abs, off.values()))


def _mebibytes(count):
    return f"{count / 2**20:,.0f} MiB"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ferry", required=True)
    parser.add_argument("--output", type=pathlib.Path, help="a file for the table")
    options = parser.parse_args()
    lines, wrong = [HEAD], []
    print(HEAD, flush=True)
    for name in options.names or {**DECODERS, **OTHERS}:
        line, off = row(options.ferry, name)
        if off is None or off > BAR:
            wrong.append(name)
        lines.append(line)
        print(line, flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    if wrong:
        print(f"more than {BAR:.0%} from the Trainer: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
