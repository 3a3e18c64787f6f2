"""What may be taken for values that are not known, where the user says so (`--assume`)."""

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .program import CaptureError

ASSUMPTIONS = {
    "zeros": "a number that the script asks for is 0, and a condition is false",
    "balanced": "topk, argmax, sort and multinomial of what is not known pick each index as often "
                "as any other, in turn: an expert gets its share of the tokens",
}
# An operator that picks → which of its results are indices; None: it has no other.
PICKERS = {"topk": 1, "sort": 1, "argsort": None, "argmax": None, "multinomial": None}


def checked(assumed):
    """These, of ASSUMPTIONS. Raises CaptureError."""
    if unknown := set(assumed) - set(ASSUMPTIONS):
        raise CaptureError(f"expected an assumption to be one of {', '.join(ASSUMPTIONS)}, "
                           f"not {sorted(unknown)[0]!r}")
    return frozenset(assumed)


def in_turn(name, args, kwargs, limit):
    """What a picker makes: (result,), its indices alone being known; None where it is no call of
    that kind, or the indices are more than `limit` bytes."""
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
    """What "zeros" answers an operator that asks for a number of this dtype."""
    if name in ("equal", "allclose") or dtype == torch.bool:
        return False
    return 0.0 if dtype.is_floating_point else 0
