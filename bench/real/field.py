"""Ferry beside the field: PyTorch's and TRL's ways of saving activation memory, on the same model.

    python field.py FERRY_TRAIN gpt --layers 4 --width 256 --steps 5
    python field.py FERRY_TRAIN llama --preset llama-1b --dtype bf16 --batch 2 --steps 6 \\
        --device cuda --trl FOLDER --json field.json

Every row is a training in a process of its own, from the same weights, with the same batches:

    keep, save_on_cpu, checkpoint, trl       in Python (field_row.py)
    ferry-keep, -offload, -checkpoint, -mixed    FERRY_TRAIN, and others by --ferry NAME=OPTIONS

What is not an option of this program goes to FERRY_TRAIN. Rows in Python compute the same bits as
their keep, or the table says where they part, and so do Ferry's; the two keeps agree within a
tolerance (LibTorch's AdamW rounds another way than Python's). Times leave the first step out.
Exits with 0, 1 where losses differ or all rows of Python or of Ferry failed, 2 for bad input, 7
where FERRY_TRAIN is missing. Needs the torch of the environment that LibTorch came from; of one row
that fails, the table says why.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from field_inputs import refusal
from field_table import silent, table, verdicts

HERE = pathlib.Path(__file__).resolve().parent
PYTHON_ROWS = ("keep", "save_on_cpu", "checkpoint", "trl")
FERRY_ROWS = {f"ferry-{policy}": f"--policy {policy}"
              for policy in ("keep", "offload", "checkpoint", "mixed")}
# Freed blocks leave the resident size, as ferry-train has it; and the same workspaces of cuBLAS.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 18), "MALLOC_TRIM_THRESHOLD_": str(1 << 20),
               "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


class BadInput(Exception):
    pass


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0], allow_abbrev=False,
        epilog="What is not named here goes to FERRY_TRAIN (see FERRY_TRAIN MODEL --help).")
    parser.add_argument("program", metavar="FERRY_TRAIN")
    parser.add_argument("model", choices=("gpt", "llama"))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rows", help="separated by commas (default: all)")
    parser.add_argument("--ferry", action="append", default=[], metavar="NAME=OPTIONS",
                        help="one more row of FERRY_TRAIN's, ferry-NAME")
    parser.add_argument("--trl", metavar="FOLDER", help="that holds TRL's activation_offloading.py")
    parser.add_argument("--text", default=HERE.parents[1] / "ARCHITECTURE.md", metavar="FILE",
                        help="to learn (default: %(default)s)")
    parser.add_argument("--optimizer", choices=("single", "foreach", "fused"), default="single",
                        help="Python's AdamW; single is a loop over the parameters, as LibTorch's")
    parser.add_argument("--tolerance", type=float, metavar="X",
                        help="between the keeps of Python and Ferry, of each loss, relative "
                             "(default: 1e-4, or 1e-2 in bf16)")
    parser.add_argument("--time-limit", type=float, default=600, metavar="SECONDS", help="of a row")
    parser.add_argument("--json", metavar="FILE", help="write all that was measured here")
    arguments, rest = parser.parse_known_args()
    return arguments, rest


def rows_of(arguments):
    """Each row's name, and its options where it is FERRY_TRAIN's."""
    rows = {name: None for name in PYTHON_ROWS} | FERRY_ROWS
    for text in arguments.ferry:
        name, _, options = text.partition("=")
        rows["ferry-" + name] = options
    if not arguments.rows:
        return rows
    asked = arguments.rows.split(",")
    if unknown := [name for name in asked if name not in rows]:
        raise BadInput(f"--rows: expected some of {', '.join(rows)}, found {unknown[0]}")
    return {name: rows[name] for name in asked}


class Field:
    def __init__(self, arguments, rest, folder):
        self.arguments = arguments
        self.text = folder / "text" / "text.txt"
        self.state = folder / "weights.state"
        self.text.parent.mkdir()
        self.text.write_bytes(pathlib.Path(arguments.text).read_bytes())
        self.command = [arguments.program, arguments.model, *rest, "--data",
                        str(self.text.parent), "--threads", str(arguments.threads)]
        # Drawn on the CPU, whatever the device is: so are they in every row.
        made = subprocess.run([*self.command, "--steps", "0", "--save", self.state],
                              env=os.environ | ENVIRONMENT, capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(print(made.stderr.strip(), file=sys.stderr) or made.returncode)
        with open(self.state, "rb") as file:
            self.training = json.loads(file.readline())["training"]
        if why := refusal(self.training):
            raise BadInput(why)

    def python(self, name):
        arguments = self.arguments
        command = [sys.executable, HERE / "field_row.py", name, self.state, self.text, "--steps",
                   str(arguments.steps), "--device", arguments.device, "--threads",
                   str(arguments.threads), "--optimizer", arguments.optimizer]
        return self.run(command + (["--trl", arguments.trl] if arguments.trl else []))

    def ferry(self, options):
        return self.run([*self.command, "--device", self.arguments.device, "--steps",
                         str(self.arguments.steps), "--json", *shlex.split(options)])

    def run(self, command):
        """The steps of a row, and why there are no more."""
        try:
            done = subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True,
                                  timeout=self.arguments.time_limit)
            out, why = done.stdout, ""
            if done.returncode != 0:
                said = done.stderr.decode(errors="replace").strip().split("\n")
                why = f"exit code {done.returncode}: {said[-1]}"
        except subprocess.TimeoutExpired as late:
            out, why = late.stdout or b"", f"over {self.arguments.time_limit:g} s"
        lines = []
        for line in out.decode().splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                why = why or f"expected a line of JSON, found {line[:80]!r}"
        row = {"steps": [line for line in lines if "step" in line], "why_not": why, "note": ""}
        for line in lines:
            if "step" not in line:
                row.update(line)
        row["why_not"] = row.pop("skipped", "") or row.pop("failed", "") or row["why_not"]
        return row


def median_of(steps, field, of=statistics.median):
    """Of the steps after the first, where there are any."""
    values = [step[field] for step in (steps[1:] or steps) if step.get(field) is not None]
    return of(values) if values else None


def sum_up(row):
    """The row's figures, in place."""
    steps = row["steps"]
    if not steps:
        return row
    row["seconds_median"] = median_of(steps, "seconds")
    row["seconds_least"] = median_of(steps, "seconds", min)
    row["forward_backward_median"] = median_of(steps, "forward_backward_seconds")
    for step in steps:  # Ferry's: what is left of the step
        step.setdefault("optimizer_seconds", step["seconds"] - step["forward_backward_seconds"])
    row["optimizer_median"] = median_of(steps, "optimizer_seconds")
    for field in ("peak_bytes", "reserved_bytes", "rss_bytes"):
        row[field] = max((step[field] for step in steps if step.get(field) is not None),
                         default=None)
    if "moved_bytes" in steps[0]:
        row["moved_bytes"] = max(step["moved_bytes"] for step in steps)
    return row


def main():
    arguments, rest = parse()
    rows = rows_of(arguments)
    tolerance = arguments.tolerance
    with tempfile.TemporaryDirectory() as folder:
        field = Field(arguments, rest, pathlib.Path(folder))
        if tolerance is None:
            tolerance = 1e-2 if field.training.get("--dtype") == "bf16" else 1e-4
        for name, options in rows.items():
            print(f"field: {name} ...", file=sys.stderr, flush=True)
            rows[name] = sum_up(field.python(name) if options is None else field.ferry(options))
    agree = verdicts(rows, tolerance)
    for family in silent(rows):
        print(f"field: no row of {family} made a step, so nothing is compared with it",
              file=sys.stderr)
        agree = False
    cuda = arguments.device == "cuda"
    measured_on = {key: next((row[key] for row in rows.values() if key in row), "not known")
                   for key in ("device", "torch")}
    settings = " ".join(f"{name} {value}" for name, value in field.training.items()
                        if name not in ("model", "--data", "--device"))
    print(f"{arguments.model} {settings}, on {measured_on['device']}, torch "
          f"{measured_on['torch']}, {arguments.steps} steps\n\n{table(rows, cuda)}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(
            {"schema": 1, "training": field.training, **measured_on,
             "optimizer": arguments.optimizer, "tolerance": tolerance, "agree": agree,
             "rows": rows}, indent=1) + "\n", encoding="ascii")
    return 0 if agree else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as bad:
        sys.exit(print(f"field: {bad}", file=sys.stderr) or 2)
    except OSError as error:
        sys.exit(print(f"field: {error}", file=sys.stderr) or 7)
