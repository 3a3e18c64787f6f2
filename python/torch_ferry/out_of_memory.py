"""Adds to an out-of-memory error what took the memory, and what to change.

The error stays the same object with the same text: Python prints the added note below it. The note
has the peak of the plan by kind, what this process holds now, and what fits none of these: other
processes, or blocks that PyTorch cannot use. Numbers are those of the moment when the guard ends.
Python 3.10 has no notes, so there the text of the error gets longer.
"""

import torch

from .gpu import held_bytes
from .plan import Plan, _bytes

# Of the reserved bytes: from this share on, what is not allocated is worth a word.
_UNUSED_PERCENT = 10
_CONTEXT_BYTES = 2 << 30  # a context with its kernels takes less


def explain(error, plan=None, model=None, optimizer=None):
    """Adds the note to a `torch.OutOfMemoryError`. Other errors, and one that has it, stay."""
    if not isinstance(error, torch.OutOfMemoryError) or getattr(error, "_ferry_noted", False):
        return
    error._ferry_noted = True
    now = _now(model)
    lines = [_planned(plan), _held(now, model, optimizer), *_advice(now, plan)]
    note = "torch_ferry: " + "\n".join(filter(None, lines))
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        error.args = (f"{error}\n{note}",)


def _now(model):
    """Returns the memory of the model's GPU by name; {} if there is none."""
    if not torch.cuda.is_available():
        return {}
    device = next((each.device for each in model.parameters()), None) if model else None
    if device is None or device.type != "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    free, total = torch.cuda.mem_get_info(device)
    return {"device": device, "free": free, "total": total,
            "allocated": torch.cuda.memory_allocated(device),
            "reserved": torch.cuda.memory_reserved(device)}


def _planned(plan):
    if not isinstance(plan, Plan):
        return ""
    row = plan.row
    return (f"the plan {plan.policy} has its peak at {_bytes(sum(row['peak_bytes'].values()))}: "
            f"{_listed(row['peak_bytes'])}. It reserves {_bytes(row['device_reserved_bytes'])}, "
            f"and the budget is {_bytes(plan.budget)}.")


def _held(now, model, optimizer):
    if not now:
        return ""
    text = (f"Now {now['device']} has {_bytes(now['allocated'])} allocated and "
            f"{_bytes(now['reserved'])} reserved by this process, {_bytes(now['free'])} free of "
            f"{_bytes(now['total'])}, and {_bytes(_others(now))} of other processes and CUDA.")
    if model is None:
        return text
    held = held_bytes((model, optimizer, ()), now["device"])
    rest = max(now["allocated"] - sum(held.values()), 0)
    return (f"{text} Allocated are {_listed(held)}, and {_bytes(rest)} of activations, temporaries "
            "and other tensors.")


def _others(now):
    return max(now["total"] - now["free"] - now["reserved"], 0)


def _listed(kinds):
    named = sorted((kind for kind in kinds.items() if kind[1]), key=lambda kind: -kind[1])
    return ", ".join(f"{_bytes(count)} of {name}" for name, count in named) or "none of the model"


def _advice(now, plan):
    """Yields what to change, the most likely first."""
    unused = now.get("reserved", 0) - now.get("allocated", 0)
    if unused * 100 > _UNUSED_PERCENT * now.get("reserved", 0):
        yield (f"{_bytes(unused)} is reserved but not allocated: call torch.cuda.empty_cache() "
               "before the training, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.")
    if now and _others(now) > _CONTEXT_BYTES:
        yield ("Other processes may hold memory of this GPU: nvidia-smi lists them.")
    if plan is None:
        yield ('Nothing was planned: ferry.auto(model) or OffloadCallback(plan="auto") choose what '
               "fits in the memory that is free.")
    elif now and isinstance(plan, Plan) and plan.budget > now["free"] + now["reserved"]:
        yield (f"The plan is for {_bytes(plan.budget)}, and this process can have "
               f"{_bytes(now['free'] + now['reserved'])}: plan with this budget=.")
    yield ("ferry.largest_batch finds the largest batch that fits; "
           "docs/guides/does-not-fit.md lists what else makes a training smaller.")
