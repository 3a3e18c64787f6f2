"""Fine-tunings as people write them, under Ferry and without: the losses and the weights are the
same bits, and what a plan said is done.

    table.py [ROW…] [--ferry FERRY]     rows with these words in their names; else all

A row runs plain, with OffloadCallback(), and with a plan for a budget between what the plan with
the least memory needs and what it takes to keep everything; and with the library's gradient
checkpointing on, plain and with such a plan. With FERRY some also run on the virtual GPU
(on_a_virtual_gpu.py).

Prints a table: how many forwards there were and how many were not the plan's; of the last that was,
the bytes that moved, the segments or spans that ran again, and what the forward left in the
process, beside what it leaves without Ferry; and the seconds, with those of planning twice. Exit
codes: 0 all is as it should be, 1 it is not.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

sys.path[:0] = [os.environ["FERRY_PYTHON_PACKAGE"], str(pathlib.Path(__file__).parents[2])]

import torch
import transformers

from campaign.fine_tunings.faults import difference, faults_of_offload, faults_of_plan
from campaign.fine_tunings.runs import BY_HAND, CARD, budget_of, run
from campaign.fine_tunings.scripts import ROWS

HEAD = "| row | variant | equal | forwards | others | moved | ran again | left, of | s |"


def try_row(name):
    """(line, faults) of each variant."""
    kept = run(name)
    yield tried(name, "offload", kept, kept, lambda: run(name, {}))
    for checkpoints in (False, True):
        plain = run(name, checkpoints=True) if checkpoints else kept
        variant = "checkpoints, plan" if checkpoints else "plan"
        yield tried(name, variant, plain, kept, lambda: planned(name, checkpoints))


def planned(name, checkpoints=False):
    """What moves goes to a file, for the host's memory is where the tensors are."""
    with tempfile.TemporaryDirectory() as disk:
        return run(name, {"card": CARD, "budget": budget_of(name, checkpoints), "disk": disk},
                   checkpoints)


def tried(name, variant, plain, kept, again):
    begun = time.monotonic()
    try:
        got = again()
    except ImportError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return f"| {name} | {variant} | {said.splitlines()[0]} |", [f"{name}, {variant}: {said}"]
    unlike = difference(plain, got)
    faults = unlike + got.watch.faults + list(
        faults_of_offload(got) if got.plan is None else faults_of_plan(got.plan, kept, got))
    at = got.watch.usual()
    usual = got.watch.forwards[at]
    others = sum(one.others for one in got.watch.forwards)
    again = " + ".join(f"{count} {what}" for count, what in (
        (usual.recomputes, "segments"), (usual.replays, "spans")) if count) or "-"
    kind = f"{variant}: {got.plan.policy}" if got.plan else variant
    held = f"{usual.held / 1e6:.1f}, {kept.watch.forwards[at].held / 1e6:.1f} MB" \
        if got.plan else "-"
    return (f"| {name} | {kind} | {'no' if unlike else 'yes'} | {len(got.watch.forwards)} | "
            f"{others} | {usual.moved / 1e6:.2f} MB | {again} | {held} | "
            f"{time.monotonic() - begun:.0f} |"), [f"{name}, {variant}: {each}" for each in faults]


def on_a_virtual_gpu(options):
    done = subprocess.run(
        [options.ferry, "run", "--python", sys.executable, "--hide-gpu", "--card", CARD,
         pathlib.Path(__file__).with_name("on_a_virtual_gpu.py"), *options.rows], check=False)
    return [f"on the virtual GPU: exit {done.returncode}"] if done.returncode else []


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--ferry")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(HEAD, "|---" * (HEAD.count("|") - 1) + "|", sep="\n", flush=True)
    faults = []
    for name in [*ROWS, BY_HAND]:
        if options.rows and not any(each in name for each in options.rows):
            continue
        try:
            for line, found in try_row(name):
                print(line, flush=True)
                faults += found
        except ImportError as error:
            print(f"| {name} | not here: {error} |", flush=True)
    if options.ferry:
        faults += on_a_virtual_gpu(options)
    for fault in faults:
        print(fault)
    print(f"fine-tunings: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
