"""What Ferry's simulator predicts of a training, beside what the training does, in one run.

    python predicted.py build/dev/ferry --options "--layers 6 --width 512" \
        --calibrate 2,8 --batches 2,4,8 --disk /var/tmp --json predicted.json

`ferry calibrate` measures the machine, and the kernels of the model's step for some batches. Then,
for each batch and policy: `ferry train --capture` writes the step down, `ferry plan` or `ferry
simulate` predicts its time and its peak of memory from what was calibrated, and `ferry train`
trains. What moves or is recomputed is a plan's, so that both do the same. Compared are the forward
and backward of a step (the median of the steps but the first two; a captured step has no optimizer)
and the peak of the device's memory, with AdamW's state. A batch that was not calibrated is marked:
its kernels' times are scaled from those that were.

Needs Python 3.11 and its standard library. Exit code 1: a command of Ferry's failed.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

POLICIES = ("keep", "offload", "checkpoint", "offload-some", "mixed")
# How the planner calls what is moved wholly.
PLANNED = {"offload": "offload", "budget": "budget", "mixed": "mixed"}
DOES_NOT_FIT = 3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("ferry", help="the program")
    parser.add_argument("--model", default="gpt")
    parser.add_argument("--options", default="", help="of the model, as one argument")
    parser.add_argument("--calibrate", default="8", help="batches whose kernels are measured")
    parser.add_argument("--batches", default="8", help="batches that are predicted and trained")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--share", type=float, default=0.5,
                        help="of what can be saved, that a budget leaves to be used (0 to 1)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--disk", help="folder of the host tier, on a CPU")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=7, help="trained, at least 3")
    parser.add_argument("--rounds", type=int, default=5, help="of each calibration")
    parser.add_argument("--small", action="store_true", help="calibrate little, to try the script")
    parser.add_argument("--folder", help="keep what is written here")
    parser.add_argument("--json", dest="json_file", help="write the rows here")
    arguments = parser.parse_args()
    if arguments.steps < 3:
        parser.error("--steps: expected 3 or more, for the first two do not count")
    for policy in arguments.policies.split(","):
        if policy not in POLICIES:
            parser.error(f"--policies: expected {', '.join(POLICIES)}, got '{policy}'")
    return arguments


class Failed(Exception):
    """A command of Ferry's."""


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = pathlib.Path(folder)
        self.ferry = str(pathlib.Path(arguments.ferry).resolve())
        self.device = ["--device", arguments.device, "--threads", str(arguments.threads)]
        self.disk = ["--disk", arguments.disk] if arguments.disk else []
        self.small = ["--small"] if arguments.small else []
        self.tables = []

    def run(self, *command, codes=(0,)):
        done = subprocess.run([self.ferry, *command], capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            raise Failed(f"ferry {shlex.join(command)}: exit {done.returncode}\n{done.stderr}")
        return done

    def model(self, batch):
        return [self.arguments.model, *shlex.split(self.arguments.options), "--batch", str(batch)]

    def file(self, name):
        return str(self.folder / name)

    def calibrate(self, batches):
        for batch in batches:
            table = self.file(f"{batch}.times.jsonl")
            print(f"calibrating batch {batch} ...", file=sys.stderr)
            self.run("calibrate", *self.device, *self.disk, *self.small, "--rounds",
                     str(self.arguments.rounds), "-o", self.file("mine.toml"), "--times", table,
                     *self.model(batch))
            self.tables += ["--times", table]

    def program(self, batch):
        file = self.file(f"{batch}.jsonl")
        self.run("train", *self.model(batch), *self.device, "--capture", file)
        return file

    def simulated(self, command, program, *options):
        done = self.run(command, program, "--card", self.file("mine.toml"), *self.tables,
                        "--optimizer", "adamw", "--json", *options, codes=(0, DOES_NOT_FIT))
        answer = json.loads(done.stdout)
        for row in answer["rows"]:  # what is measured is without the optimizer's step
            row["step_ns"] -= row["optimizer_ns"]
        return {row["policy"]: row for row in answer["rows"]}, answer["times"]

    # Reserved bytes between those of recomputing everything and those of keeping everything.
    def budget(self, program):
        rows, _ = self.simulated("simulate", program, "--policy", "keep,checkpoint,offload")
        most = rows["keep"]["device_reserved_bytes"]
        least = min(row["device_reserved_bytes"] for row in rows.values())
        return int(least + self.arguments.share * (most - least))

    # What is predicted, and how `ferry train` is told to do the same.
    def predict(self, policy, program, batch, budget):
        if policy not in PLANNED:
            rows, times = self.simulated("simulate", program, "--policy", policy)
            return rows[policy], times, ["--policy", policy]
        plan = self.file(f"{batch}.{policy}.plan")
        within = ["--budget", str(budget)] if policy != "offload" else []
        rows, times = self.simulated("plan", program, "--policy", PLANNED[policy], *within, "-o",
                                     plan)
        kind = "mixed" if policy == "mixed" else "offload-some"
        return rows[PLANNED[policy]], times, ["--policy", kind, "--plan", plan, *self.disk]

    def measure(self, batch, policy_options):
        done = self.run("train", *self.model(batch), *self.device, *policy_options, "--steps",
                        str(self.arguments.steps), "--json")
        steps = [json.loads(line) for line in done.stdout.splitlines()][2:]
        return {
            "ns": int(1e9 * statistics.median(step["forward_backward_seconds"] for step in steps)),
            "least_ns": int(1e9 * min(step["forward_backward_seconds"] for step in steps)),
            "step_ns": int(1e9 * statistics.median(step["seconds"] for step in steps)),
            "peak_bytes": max(step["peak_bytes"] for step in steps),
            "moved_bytes": steps[-1]["moved_bytes"],
        }

    def rows(self, batch, calibrated):
        program = self.program(batch)
        budget = self.budget(program)
        for policy in self.arguments.policies.split(","):
            print(f"batch {batch}, {policy} ...", file=sys.stderr)
            predicted, times, policy_options = self.predict(policy, program, batch, budget)
            measured = self.measure(batch, policy_options)
            yield {
                "batch": batch,
                "calibrated": calibrated,
                "policy": policy,
                "fits": predicted["fits"],
                "predicted_ns": predicted["step_ns"],
                "measured_ns": measured["ns"],
                "measured_least_ns": measured["least_ns"],
                "measured_step_ns": measured["step_ns"],
                "predicted_peak_bytes": predicted["device_peak_bytes"],
                "measured_peak_bytes": measured["peak_bytes"],
                "predicted_moved_bytes": predicted["offloaded_bytes"]
                                         + predicted["reloaded_bytes"],
                "measured_moved_bytes": measured["moved_bytes"],
                "recomputes": predicted["recomputes"],
                "times": times,
            }


def show(row):
    times = row["times"]
    seconds = row["predicted_ns"] * 1e-9, row["measured_ns"] * 1e-9
    mebibytes = row["predicted_peak_bytes"] / 2**20, row["measured_peak_bytes"] / 2**20
    moved = row["measured_moved_bytes"] / 2**20
    batch = f"{row['batch']}{'' if row['calibrated'] else '*'}"
    measured_ops = f"{times['measured']}+{times['scaled']}/{times['ops']}"
    print(f"{batch:>6} {row['policy']:11} {seconds[0]:9.4f} s {seconds[1]:9.4f} s "
          f"{seconds[0] / seconds[1]:6.3f} {mebibytes[0]:9.1f} {mebibytes[1]:9.1f} "
          f"{mebibytes[0] / mebibytes[1]:6.3f} {moved:9.1f} {measured_ops:>14}"
          f"{'' if row['fits'] else '  (does not fit)'}", flush=True)


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or scratch
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        bench = Bench(arguments, folder)
        calibrated = numbers(arguments.calibrate)
        bench.calibrate(calibrated)
        print(f"ferry train {shlex.join(bench.model('N'))} {shlex.join(bench.device + bench.disk)}")
        print(f"calibrated on batches {arguments.calibrate}; * another one, with scaled times")
        print(f"{'batch':>6} {'policy':11} {'predicted':>11} {'measured':>11} {'ratio':>6} "
              f"{'peak MiB':>9} {'measured':>9} {'ratio':>6} {'moved MiB':>9} {'exact+scaled':>14}")
        rows = []
        for batch in numbers(arguments.batches):
            for row in bench.rows(batch, batch in calibrated):
                show(row)
                rows.append(row)
        hardware = pathlib.Path(bench.file("mine.toml")).read_text(encoding="utf-8")
    if arguments.json_file:
        answer = {"schema": 1, "model": arguments.model, "options": arguments.options,
                  "device": arguments.device, "disk": arguments.disk, "hardware": hardware,
                  "calibrated": calibrated, "rows": rows}
        pathlib.Path(arguments.json_file).write_text(json.dumps(answer, indent=2) + "\n",
                                                     encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        print(failed, file=sys.stderr)
        sys.exit(1)
