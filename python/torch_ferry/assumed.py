"""The assumptions about unknown values that a user can allow in a capture (`--assume`).

Without them a step that asks for an unknown value is rejected (asking.py). values.py uses an
assumption only where a value is not known, and the program lists the lines for which it did. The
real step may differ from the captured one there.
"""

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .program import CaptureError

ASSUMPTIONS = {
    "zeros": "a number that the script asks for is 0, and a condition is false",
    "balanced": "topk, argmax, sort and multinomial of unknown values pick all indices equally "
                "often, in turn, so each expert gets its share of the tokens",
}
# Operators that pick, and the position of the indices in their result; None: a single result.
PICKERS = {"topk": 1, "sort": 1, "argsort": None, "argmax": None, "multinomial": None}


def checked(assumed):
    """Returns the names as a set. Raises CaptureError if one is not in ASSUMPTIONS."""
    if unknown := set(assumed) - set(ASSUMPTIONS):
        raise CaptureError(f"assume: expected an assumption, one of {', '.join(ASSUMPTIONS)}; "
                           f"got {sorted(unknown)[0]!r}")
    return frozenset(assumed)


def in_turn(name, args, kwargs, limit):
    """Returns (result,) of an operator that picks, in which only the indices are known.

    Returns None if this call does not pick along one dimension, or if the indices have more than
    `limit` bytes."""
    source = args[0]
    dim = (args[2] if len(args) > 2 else kwargs.get("dim", -1)) if name == "topk" else \
        args[1] if len(args) > 1 and name != "multinomial" else kwargs.get("dim", -1)
    if dim is None or dim is True or dim is False or source.dim() == 0:
        return None
    count = source.shape[dim]
    picks = {"topk": args[1] if len(args) > 1 else None, "argmax": 1,
             "multinomial": args[1] if name == "multinomial" else None}.get(name, count)
    rows = source.numel() // max(count, 1)
    if not isinstance(picks, int) or rows * picks * 8 > limit or not count:
        return None
    with _disable_current_modes():
        indices = (torch.arange(rows * picks, device="cpu") % count).reshape(
            *(size for at, size in enumerate(source.shape) if at != dim % source.dim()), picks)
        indices = indices.movedim(-1, dim % source.dim())
        if name == "argmax" and not (kwargs.get("keepdim") or len(args) > 2 and args[2]):
            indices = indices.squeeze(dim)
    at = PICKERS[name]
    return (indices,) if at is None else ((None,) * at + (indices,),)


def number(name, dtype):
    """Returns what an operator that asks for a number of this dtype gets under "zeros"."""
    if name in ("equal", "allclose") or dtype == torch.bool:
        return False
    return 0.0 if dtype.is_floating_point else 0
