"""What `ferry plan` says of a model by its name, beside the library's own Trainer.

    table.py [NAME…] --ferry FERRY [--page PAGE]     all configurations where none is named

For each configuration of decoders.py and others.py, `ferry plan config.json --policy keep` plans
the training, and trained.py trains it with `ferry run --no-values`: both on a simulated card, with
the same batch. TRL's trainers train a small model with values (tuned.py); they checkpoint its
layers, so the plan is that of the policy `checkpoint`.

Prints a table with the peaks of allocated and of reserved memory. The seconds are those of the
plan, whose capture is not cached, and of the run. With PAGE the rows of that page's table are
written anew (bench/results/by-name.md).

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
from campaign.by_name.others import OTHERS, SMALL

ALL = {**DECODERS, **OTHERS}
# name → arguments of tuned.py
TUNED = {"a small Llama, SFTTrainer": ("sft",), "a small Llama, SFTTrainer, LoRA": ("sft", "8"),
         "a small Llama, DPOTrainer": ("dpo",), "a small Llama, DPOTrainer, LoRA": ("dpo", "8")}
CARD = "h200"
BAR = 0.01
HEAD = ("| model | tokens × batch | allocated | Trainer | | reserved | Trainer | | plan | run |\n"
        "|---|---|---|---|---|---|---|---|---|---|")


class Failed(Exception):
    pass


def planned(ferry, name, size, batch, contents):
    """Returns (peaks, seconds) of the plan."""
    trainer, *rank = TUNED.get(name, ("",))
    options = ["--policy", "checkpoint" if trainer else "keep"]
    options += [f"--{trainer}"] * bool(trainer) + [f"--lora={each}" for each in rank]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps({**contents, "_name_or_path": name}))
        printed, seconds = _ran(
            [ferry, "plan", path, "--card", CARD, *options, "--tokens", str(size), "--batch",
             str(batch), "--json"], XDG_CACHE_HOME=folder, FERRY_PYTHON=sys.executable)
    row, = json.loads(printed)["rows"]
    return {key: row[f"device_{field}_bytes"] for key, field in (
        ("allocated", "peak"), ("reserved", "reserved"))}, seconds


def trained(ferry, name):
    """Returns (peaks, seconds) of the training."""
    script = ["--no-values", "--zeros", HERE / "trained.py", name]
    if name in TUNED:
        trainer, *rank = TUNED[name]
        script = [HERE / "tuned.py", trainer, *(f"--lora={each}" for each in rank)]
    printed, seconds = _ran([ferry, "run", "--python", sys.executable, "--hide-gpu", "--card",
                             CARD, *script])
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
    size, batch, contents = SMALL if name in TUNED else ALL[name]
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


def with_rows(page, lines):
    """Returns the page with these rows in its table, in place of those with the same names."""
    before, _, rest = page.partition(HEAD + "\n")
    old = [line for line in rest.split("\n\n")[0].splitlines()]
    after = rest[len("\n".join(old)):].lstrip("\n")
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in [*old, *lines]}
    ordered = [rows[name] for name in {**ALL, **TUNED} if name in rows]
    return before + "\n".join([HEAD, *ordered]) + "\n" + (after and "\n" + after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ferry", required=True)
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    lines, wrong = [], []
    print(HEAD, flush=True)
    for name in options.names or {**ALL, **TUNED}:
        line, off = row(options.ferry, name)
        if off is None or off > BAR:
            wrong.append(name)
        lines.append(line)
        print(line, flush=True)
    if options.page:
        options.page.write_text(with_rows(options.page.read_text(), lines))
    if wrong:
        print(f"more than {BAR:.0%} from the Trainer: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
