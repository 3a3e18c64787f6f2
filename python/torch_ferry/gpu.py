"""The GPU that is present: which card it is, and how much memory a training can have on it.

    card, budget = gpu.target(model, optimizer, inputs)

PyTorch knows a GPU by its name, such as "NVIDIA A100-SXM4-80GB". It is the shipped card whose name
or description has all words of this name, with the memory that PyTorch reports. A 4070 Ti is no
4070, so it has no card.

The budget is what PyTorch may reserve for the training: the free memory, and what this process has
reserved already, of which its cache is a part. Parameters, gradients, optimizer state and inputs
are in every plan, so they are not subtracted. Other tensors of this process are.
"""

import re

import torch
from torch.utils._pytree import tree_leaves

from .mismatch import device_of
from .plan import _bytes, _ferry, _hardware
from .sizes import size

_MAKERS = {"nvidia", "geforce", "tesla", "gpu", "gb"}
# PyTorch reports this much less or more than a card's file says, and it is still the card.
_NEAR_PERCENT = 3


class NoGpu(ValueError):
    """There is no GPU to plan for, or it is not known. The message says which options to give."""


def check_given(card, budget):
    """Raises NoGpu if one of them is missing and no GPU is present, and ValueError for a budget
    that cannot be read. It makes no CUDA context."""
    if budget is not None:
        size(budget, "budget")
    if not torch.cuda.is_available():
        _refuse("no GPU is present", card, budget)


def _refuse(why, card, budget):
    missing = [name for name, value in (("card=", card), ("budget=", budget)) if value is None]
    if missing:
        raise NoGpu(f"{why}: expected {' and '.join(missing)}, because an automatic plan takes "
                    'them from the GPU of the model; for example card="rtx4090", budget="20GiB"')


def target(model, optimizer=None, inputs=(), card=None, budget=None):
    """Returns (card, budget in bytes) for a training of the model. What is given stays as it is.

    optimizer  the optimizer, if it exists: its state is part of the training
    inputs     the batch

    Raises NoGpu if a value is missing and the model is not on a GPU, or on an unknown one."""
    if card is not None and budget is not None:
        return card, size(budget, "budget")
    if device_of(model) != "cuda":
        _refuse("the model is not on a GPU", card, budget)
    device = next(each.device for each in (*model.parameters(), *model.buffers()))
    card = card_of(device) if card is None else card
    if budget is not None:
        return card, size(budget, "budget")
    torch.cuda.empty_cache()  # otherwise blocks of building the model stay split
    held = held_bytes((model, optimizer, inputs), device)
    room = room_bytes(device, _hardware(str(card)))
    others = max(torch.cuda.memory_allocated(device) - sum(held.values()), 0)
    if others >= room:
        raise NoGpu(f"budget: other tensors of this process hold {_bytes(others)} of the "
                    f"{_bytes(room)} that it can have on {device}: free them, or give budget=")
    return card, room - others


def card_of(device):
    """Returns the name of the shipped card that this GPU is. Raises NoGpu if there is none."""
    name = torch.cuda.get_device_name(device)
    total = torch.cuda.get_device_properties(device).total_memory
    cards = _ferry("hardware", "--json")[1]["hardware"]
    found = [each["name"] for each in cards if _is_card(name, total, each)]
    if len(found) == 1:
        return found[0]
    raise NoGpu(f"card: the GPU {name!r} with {_bytes(total)} is not a card that Ferry knows: "
                "expected card=, the most similar one of `ferry hardware`, or the path of a file "
                "that `ferry calibrate` wrote")


def _is_card(name, total, card):
    if name.split()[:1] == [card["name"]]:  # the virtual GPU of `ferry run`
        return True
    described = card["description"].rpartition(",")[0] or card["description"]  # without its link
    words = _words(name)
    return bool(words) and words <= _words(described) and \
        abs(total - card["capacity_bytes"]) * 100 <= _NEAR_PERCENT * card["capacity_bytes"]


def _words(text):
    """Returns the words of a name without its maker; "80GB" is "80"."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {re.sub(r"^(\d+)gb$", r"\1", word) for word in words} - _MAKERS


def room_bytes(device, hardware):
    """Returns what PyTorch can reserve in this process: at most what the card leaves to a process
    that is alone on it, because CUDA loads kernels later."""
    free, total = torch.cuda.mem_get_info(device)
    allowed = int(total * torch.cuda.get_per_process_memory_fraction(device))
    alone = hardware["capacity_bytes"] - hardware["context_bytes"]
    return min(free + torch.cuda.memory_reserved(device), allowed, alone)


def held_bytes(step, device):
    """Returns the bytes that the tensors of a step take on the device, by the kinds of a plan.
    `step` is (model, optimizer or None, inputs)."""
    model, optimizer, inputs = step
    parameters = list(model.parameters())
    states = getattr(optimizer, "state", None) or {}
    kinds = {"parameters": parameters, "buffers": list(model.buffers()),
             "gradients": [each.grad for each in parameters if each.grad is not None],
             "optimizer": tree_leaves([*states.values()]), "inputs": tree_leaves(inputs)}
    seen = set()
    return {kind: sum(_new_bytes(each, device, seen) for each in tensors)
            for kind, tensors in kinds.items()}


def _new_bytes(tensor, device, seen):
    """Returns the bytes of a tensor's storage, or 0 if it was counted before."""
    if not isinstance(tensor, torch.Tensor) or tensor.device != torch.device(device):
        return 0
    try:
        storage = tensor.untyped_storage()
        key, count = storage.data_ptr(), storage.nbytes()
    except (NotImplementedError, RuntimeError):  # a wrapper without a storage of its own
        key, count = id(tensor), tensor.numel() * tensor.element_size()
    if key in seen:
        return 0
    seen.add(key)
    return count
