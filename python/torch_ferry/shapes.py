"""Computes the shapes of results that depend on the values of some arguments, if these are known.

If all arguments of a call are known, its result is known too (values.py). But CTC's loss saves as
much as its lengths say, whatever the probabilities are, and a known mask selects equally many
elements of any tensor. So each formula here reads only the values that determine the shape.

A formula gets the arguments of the operator by name. It returns the results: meta tensors, of which
only shapes and strides count, and real tensors, whose values are known as well. It returns None if
it needs a value that is not known. A real tensor that has to be on the CPU in any case is wrapped
in `OnHost`. A formula raises the errors that PyTorch raises.

Not here: `index`, whose masks are replaced by index tensors (`ValueMode`), and the residuals of
linalg_lstsq for drivers that look at the rank of the matrix.
"""

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .op_call import arguments_of

aten = torch.ops.aten
# The shapes of these depend on values. Before 2.13 PyTorch's formula for them makes one element.
UNTOLD = {"_unique"}


class OnHost:
    """Wraps a real tensor whose fake tensor is on the CPU, wherever the arguments are."""

    def __init__(self, tensor):
        self.tensor = tensor


def made(func, args, kwargs, value_of):
    """Returns the results of a call whose shapes PyTorch cannot compute, or None. `value_of` gives
    the real tensor with the values of a fake one, or None if they are not known."""
    formula = FORMULAS.get(func._overloadpacket.__name__)
    if formula is None:
        return None
    given = dict(arguments_of(func, args, kwargs))
    with _disable_current_modes(), torch.no_grad():
        return formula(value_of, **given)


def _meta(tensor, shape=None, dtype=None):
    """Returns a meta tensor with the shape and strides of `tensor`, or with the given shape."""
    dtype = dtype or tensor.dtype
    if shape is None:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device="meta")
    return torch.empty(shape, dtype=dtype, device="meta")


def _masked_select(value_of, self, mask, **_):
    mask = value_of(mask)
    if mask is None:
        return None
    whole = torch.broadcast_shapes(mask.shape, self.shape)
    times = whole.numel() // mask.numel() if mask.numel() else 0
    return _meta(self, [int(mask.count_nonzero()) * times])


def _bincount(value_of, self, weights, minlength):
    values = value_of(self)
    if values is None:
        return None
    unweighted = torch.bincount(values, None, minlength)
    if weights is None:
        return unweighted
    is_single = weights.dtype == torch.float32
    return _meta(weights, unweighted.shape, torch.float32 if is_single else torch.float64)


def _ctc_loss(value_of, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    lengths = [each if isinstance(each, (list, tuple)) else value_of(each)
               for each in (input_lengths, target_lengths)]
    if any(each is None for each in lengths):
        return None
    lengths = [each.tolist() if isinstance(each, torch.Tensor) else each for each in lengths]
    return aten._ctc_loss.default(_meta(log_probs), _meta(targets), *lengths, blank, zero_infinity)


def _pack_padded_sequence(value_of, input, lengths, batch_first):
    values = value_of(lengths)
    if values is None:
        return None
    rows = torch.zeros((), dtype=torch.bool).expand(input.shape[:2])  # one element of memory
    packed, batch_sizes = aten._pack_padded_sequence.default(rows, values, batch_first)
    return _meta(input, [*packed.shape, *input.shape[2:]]), OnHost(batch_sizes)


def _linalg_lstsq(value_of, self, b, rcond, driver):
    driver = driver or ("gelsy" if self.device.type == "cpu" else "gels")
    if driver not in ("gelsy", "gels"):
        return None
    is_vector = b.dim() == 1 or b.shape == self.shape[:-1]
    rows, columns = self.shape[-2:]
    batch = torch.broadcast_shapes(self.shape[:-2], b.shape[:-1] if is_vector else b.shape[:-2])
    right = 1 if is_vector else b.shape[-1]
    solution = _meta(self, [*batch, right, max(rows, columns)]).mT.narrow(-2, 0, columns)
    leaves_residuals = driver == "gels" and rows > columns
    return (solution.squeeze(-1) if is_vector else solution,
            _meta(self, [*batch, right] if leaves_residuals else [0]),
            _meta(self, batch if driver == "gelsy" else [0], torch.int64),
            _meta(self, [0], self.real.dtype if self.is_complex() else self.dtype))


FORMULAS = {"masked_select": _masked_select, "bincount": _bincount, "_ctc_loss": _ctc_loss,
            "_pack_padded_sequence": _pack_padded_sequence, "linalg_lstsq": _linalg_lstsq}
