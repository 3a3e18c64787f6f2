"""Whole trainings on a real GPU, and the same ones on the virtual GPU: the memory of each step.

    real_gpu.py run FILE [--jobs N]             on a machine with a GPU of 80 GB; writes FILE
    real_gpu.py compare FILE FERRY PYTHON [--card h100]      anywhere: a row for each training

`run` needs torch and transformers, and nothing of Ferry's but programs/whole_training.py beside
this file. `compare` runs the same rows under `ferry run --no-values` and prints, for each, how far
the worst figure of the virtual GPU is from the real one's, by kind. Exit code 1: a training has not
all of its steps, there or here, or a figure is more than a hundredth off.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/whole_training.py"
STEPS = 4
ALLOWED = 0.01
KINDS = ("fwd_end", "peak_fwd", "bwd_end", "peak_fwdbwd", "peak_opt", "reserved", "end")

GPT2 = {"model": "gpt2", "batch": 8, "seq": 1024}
LLAMA = {"model": "llama3-8b", "batch": 1, "seq": 8192}
VIT = {"model": "vit-b16", "batch": 128, "seq": 224}
T5 = {"model": "t5-small", "batch": 32, "seq": 512}
USUAL = {"prec": "bf16", "opt": "adamw", "ckpt": "off", "offload": "off", "accum": 1, "drop": 0.0}


def row(model, **other):
    return {**model, **USUAL, **other}


ROWS = [
    row(GPT2), row(GPT2, opt="none"), row(GPT2, opt="fused"), row(GPT2, opt="sgd"),
    row(GPT2, prec="fp32"), row(GPT2, prec="autocast"), row(GPT2, ckpt="noreentrant"),
    row(GPT2, ckpt="reentrant"), row(GPT2, accum=4), row(GPT2, drop=0.1),
    row(GPT2, prec="autocast", opt="fused", ckpt="noreentrant"),
    row(VIT), row(VIT, prec="autocast"), row(VIT, prec="autocast", opt="sgd", ckpt="noreentrant"),
    row(T5, prec="fp32"), row(T5, prec="autocast", opt="fused"), row(T5, ckpt="noreentrant"),
    row(T5, accum=4),
    row(LLAMA, opt="none", ckpt="noreentrant"), row(LLAMA, opt="sgd", ckpt="noreentrant"),
]


def said(values):
    return " ".join(str(values[name]) for name in ("model", "prec", "opt", "ckpt")) + (
        f" accum {values['accum']}" if values["accum"] > 1 else "") + (
        f" drop {values['drop']}" if values["drop"] else "")


def steps_of(command):
    done = subprocess.run([*map(str, command), str(STEPS)], capture_output=True, text=True,
                          check=False)
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(steps) != STEPS:
        print(f"{command[-1]}: exit {done.returncode}\n{done.stderr[-3000:]}", file=sys.stderr)
    return steps


def run(file, jobs):
    """The small ones side by side, and then each large one alone."""
    def one(values):
        steps = steps_of([sys.executable, PROGRAM, json.dumps(values)])
        print(f"{said(values)}: {len(steps)} steps", flush=True)
        return {"row": values, "steps": steps}

    small = [values for values in ROWS if values["model"] != LLAMA["model"]]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(one, small))
    done += [one(values) for values in ROWS if values["model"] == LLAMA["model"]]
    import torch
    import transformers
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
             "transformers": transformers.__version__}
    file.write_text(json.dumps({"schema": 1, **about, "trainings": done}, indent=1) + "\n")
    return 0 if all(len(training["steps"]) == STEPS for training in done) else 1


def worst(real, virtual, kind):
    ratios = [ours[kind] / theirs[kind] - 1 for ours, theirs in zip(virtual, real)]
    return max(ratios, key=abs)


def compare(file, ferry, python, card):
    written = json.loads(file.read_text())
    print(f"{written['device']}, torch {written['torch']}, transformers {written['transformers']}\n"
          f"\n| training | {' | '.join(KINDS)} |\n|{'---|' * (1 + len(KINDS))}")
    beyond = 0
    for training in written["trainings"]:
        virtual = steps_of([ferry, "run", "--python", python, "--hide-gpu", "--no-values",
                            "--zeros", "--card", card, PROGRAM, json.dumps(training["row"])])
        if len(training["steps"]) != STEPS or len(virtual) != STEPS:
            beyond += 1
            print(f"| {said(training['row'])} | not all steps: {len(training['steps'])} there, "
                  f"{len(virtual)} here |", flush=True)
            continue
        off = [worst(training["steps"], virtual, kind) for kind in KINDS]
        beyond += any(abs(each) > ALLOWED for each in off)
        cells = " | ".join(f"{100 * each:+.2f} %" if each else "equal" for each in off)
        print(f"| {said(training['row'])} | {cells} |", flush=True)
    return 1 if beyond else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=("run", "compare"))
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--card", default="h100")
    given = parser.parse_args()
    if given.verb == "run":
        return run(given.file, given.jobs)
    if len(given.rest) != 2:
        parser.error("compare: expected FERRY and PYTHON")
    if not given.file.is_file():
        parser.error(f"compare: no file {given.file}")
    return compare(given.file, *given.rest, given.card)


if __name__ == "__main__":
    sys.exit(main())
