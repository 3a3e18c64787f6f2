"""Captured programs: planned, executed, and the simulator decides the same; its peaks beside the
device's.

    decisions.py FERRY DEVICE [OPTIONS OF FERRY TRAIN...]

Captures a step of the GPT and of the ResNet, plans it under several budgets, executes each plan for
a step, and replays its decisions on the simulated device. Exit code 1: one of them differs, or
nothing fits a budget, so that there is nothing to compare.
"""

import json
import pathlib
import subprocess
import sys

MODELS = ("gpt", "resnet")
POLICIES = ("offload-some", "mixed")
SHARES = (25, 50)  # of the activations at keep's peak, that a budget leaves out, in per cent
NOTHING_FITS = 3


class Ferry:
    def __init__(self, program, device, options):
        self.program, self.device, self.options = program, device, options

    def run(self, *words, good=(0,)):
        command = [self.program, *map(str, words)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode not in good:
            said = ran.stderr + ran.stdout
            raise SystemExit(f"{' '.join(command)}: exit {ran.returncode}\n{said}")
        return ran

    def train(self, model, *words):
        ran = self.run("train", model, "--device", self.device, *self.options, *words)
        return ran.stdout

    def plan(self, program, *words):
        """The last row of the table; None where nothing fits."""
        ran = self.run("plan", program, "--card", "h100", "--optimizer", "none", "--steps", 1,
                       "--json", *words,
                       good=(0, NOTHING_FITS))
        return json.loads(ran.stdout)["rows"][-1] if ran.returncode == 0 else None


def execute(ferry, model, program, policy, budget):
    """One row of the table; None where no plan meets the budget."""
    planned = ferry.plan(program, "--policy", policy, "--budget", budget, "-o", "plan")
    if not planned:
        return None
    step = json.loads(ferry.train(model, "--steps", 1, "--policy", policy, "--plan", "plan",
                                  "--decisions", "decisions", "--json"))
    replayed = ferry.run("replay", program, "--decisions", "decisions", "--plan", "plan",
                         good=(0, 6))
    return planned, step, replayed


def main(ferry):
    print("| model | policy | left out | decisions | simulated peak | measured | ratio "
          "| simulated reserved | measured |\n|---|---|---|---|---|---|---|---|---|")
    differ = unplanned = 0
    for model in MODELS:
        program = f"{model}.jsonl"
        ferry.train(model, "--capture", program)
        keep = ferry.plan(program, "--policy", "keep")
        needs, activations = keep["least_bytes"], keep["peak_bytes"]["activations"]
        for policy, share in [(policy, share) for policy in POLICIES for share in SHARES]:
            executed = execute(ferry, model, program, policy, needs - activations * share // 100)
            if not executed:
                unplanned += 1
                print(f"| {model} | {policy} | {share} % | (nothing fits) | | | | | |")
                continue
            planned, step, replayed = executed
            same = replayed.returncode == 0
            differ += not same
            if not same:
                print(replayed.stdout + replayed.stderr, file=sys.stderr)
            simulated, measured = planned["device_peak_bytes"], step["peak_bytes"]
            print(f"| {model} | {policy} | {share} % | {'equal' if same else 'DIFFER'} "
                  f"| {simulated / 2**20:.1f} MiB | {measured / 2**20:.1f} MiB "
                  f"| {measured / simulated:.3f} | {planned['device_reserved_bytes'] / 2**20:.1f} MiB "
                  f"| {step['reserved_bytes'] / 2**20:.1f} MiB |", flush=True)
    return 1 if differ or unplanned else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(Ferry(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], sys.argv[3:])))
