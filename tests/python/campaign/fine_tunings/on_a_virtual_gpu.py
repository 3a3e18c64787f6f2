"""Fine-tunings on the virtual GPU: `ferry run --card rtx4090 on_a_virtual_gpu.py [ROW…]`.

What Ferry trains has the bits of a run without, and a lower peak of a forward and its backward, as
PyTorch's allocator counts it: the plan's, and near it where tensors move, for what is on its way
depends on time. In single precision, without dropout and fused attention, the losses and the
weights are the CPU's, too: bf16's autocast casts other operators on a GPU. Prints a table. Exit
codes: 0 all is as it should be, 1 it is not.
"""

import os
import pathlib
import sys
import warnings

sys.path[:0] = [os.environ["FERRY_PYTHON_PACKAGE"], str(pathlib.Path(__file__).parents[2])]

import torch
import transformers

from campaign.fine_tunings.faults import difference
from campaign.fine_tunings.runs import BY_HAND, CARD, budget_of, run
from campaign.fine_tunings.scripts import llama

WITHOUT_DROPOUT = ("Trainer, causal LM", BY_HAND)
ROWS = (*WITHOUT_DROPOUT, "Trainer, classification")
HEAD = "| row | variant | equal | peak | the plan's | with all kept |\n|---|---|---|---|---|---|"
NEAR, NEAR_WITH_MOVES = 0.001, 0.05  # of a peak


def tries(name):
    """(variant, what ran, what that should be, what runs with all kept)."""
    gpu = {"use_cpu": False}
    if name in WITHOUT_DROPOUT:
        def single(*options, **more):
            model = llama(attn_implementation="eager")
            return run(name, *options, bf16=False, model=model, **more)
        plain = single(**gpu)
        yield "plain, f32, as on the CPU", plain, single(), None
        yield "offload, f32", single({}, **gpu), plain, plain
    plain = kept = run(name, **gpu)
    yield "offload", run(name, {}, **gpu), plain, kept
    for checkpoints in (False, True):
        if checkpoints:
            plain = run(name, checkpoints=True, **gpu)
        options = {"card": CARD, "budget": budget_of(name, checkpoints, **gpu)}
        got = run(name, options, checkpoints, **gpu)
        variant = ("checkpoints, " if checkpoints else "") + f"plan: {got.plan.policy}"
        yield variant, got, plain, kept


def faults_of(got, want, kept):
    yield from difference(want, got) + got.watch.faults
    if kept and peak(got) >= peak(kept):
        yield f"the peak is {peak(got)} B, and {peak(kept)} B with all kept"
    if got.plan:
        said = got.plan.row["device_peak_bytes"]
        near = NEAR_WITH_MOVES if got.plan.row["offloaded_bytes"] else NEAR
        if abs(peak(got) - said) > near * said:
            yield f"the peak is {peak(got)} B; the plan says {said}"


def peak(one):
    """The first step has no state of the optimizer's yet."""
    return max(each.peak for each in one.watch.forwards[2:])


def megabytes(count):
    return f"{count / 1e6:.2f} MB"


def main(names):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    print(HEAD, flush=True)
    all_faults = []
    for name in [row for row in ROWS if not names or any(each in row for each in names)]:
        for variant, got, want, kept in tries(name):
            said = megabytes(got.plan.row["device_peak_bytes"]) if got.plan else "-"
            print(f"| {name} | {variant} | {'no' if difference(want, got) else 'yes'} | "
                  f"{megabytes(peak(got))} | {said} | {megabytes(peak(kept)) if kept else '-'} |",
                  flush=True)
            all_faults += [f"{name}, {variant}: {each}" for each in faults_of(got, want, kept)]
    print(*all_faults, f"on the virtual GPU: {len(all_faults)} faults", sep="\n")
    return 1 if all_faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
