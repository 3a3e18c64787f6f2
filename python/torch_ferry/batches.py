"""Finds the largest batch that fits.

`torch_ferry.plan` names it in the error `DoesNotFit`, if the requested batch does not fit.
`torch_ferry.largest_batch` returns it.

The batch is the first dimension that most inputs of the step share. Smaller batches are captured
and planned in the same way. The memory that a batch needs is nearly linear in its size, so a search
by linear interpolation tries only a few.
"""

import collections
import types

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

# The first guesses interpolate between two sizes; after this many the search bisects.
_BY_LINE = 4


def batch_of(inputs):
    """Returns the most common size of the first dimension of the tensors; None without tensors."""
    sizes = collections.Counter(leaf.shape[0] for leaf in tree_leaves(inputs)
                                if isinstance(leaf, torch.Tensor) and leaf.dim())
    return sizes.most_common(1)[0][0] if sizes else None


def cut(inputs, batch, size):
    """Returns the first `size` samples of inputs that have `batch` samples."""
    def smaller(tensor):
        other = isinstance(tensor, torch.nn.Parameter) or not tensor.dim()
        if other or tensor.shape[0] != batch:
            return tensor
        return tensor.detach()[:size].clone().requires_grad_(tensor.requires_grad)
    return tree_map_only(torch.Tensor, smaller, inputs)


def cut_function(function, batch, size):
    """Returns the function with fewer samples in the tensors that it reads from outside (labels).
    """
    if not isinstance(function, types.FunctionType):
        return function
    outside = function.__globals__
    read = {name: cut(outside[name], batch, size) for name in function.__code__.co_names
            if isinstance(outside.get(name), torch.Tensor)}
    cells = tuple(map(lambda cell: _cut_cell(cell, batch, size), function.__closure__ or ()))
    made = types.FunctionType(function.__code__, {**outside, **read}, function.__name__,
                              cut(function.__defaults__, batch, size), cells)
    made.__kwdefaults__ = cut(function.__kwdefaults__, batch, size)
    return made


def _cut_cell(cell, batch, size):
    try:
        return types.CellType(cut(cell.cell_contents, batch, size))
    except ValueError:  # the cell is still empty
        return cell


def largest(least, batch, least_bytes, budget):
    """Returns (size, bytes): the largest batch below `batch` that fits, and the memory it needs.

    If a single sample does not fit, the size is 0.

    least        a function of a size, which returns (bytes that its step needs, True if it fits)
    least_bytes  bytes that the whole batch needs
    budget       bytes"""
    low, high = 1, batch
    low_bytes, fits = least(low)
    if not fits:
        return 0, low_bytes
    high_bytes, guesses = least_bytes, 0
    while high - low > 1:
        middle = (low + high) // 2
        if guesses < _BY_LINE and high_bytes > low_bytes:
            share = (budget - low_bytes) / (high_bytes - low_bytes)
            middle = min(max(low + int(share * (high - low)), low + 1), high - 1)
        guesses += 1
        bytes_, fits = least(middle)
        if fits:
            low, low_bytes = middle, bytes_
        else:
            high, high_bytes = middle, bytes_
    return low, low_bytes


def largest_from_one(least, size_max, budget):
    """Returns the largest size up to `size_max` that fits, or 0.

    It goes up from one sample: to the size that the last two sizes let expect, and at least twice
    as far as before; eight times if both need the same, because PyTorch reserves whole blocks. The
    first size that does not fit ends that, and `largest` searches below it.

    least   a function of a size, as in `largest`
    budget  bytes"""
    known = {}

    def asked(size):
        if size not in known:
            known[size] = least(size)
        return known[size]

    if not asked(1)[1]:
        return 0
    size, low = 1, 1
    while size < size_max:
        more = asked(size)[0] - asked(low)[0]
        if more > 0:
            expected = size + (budget - asked(size)[0]) * (size - low) // more
        else:
            expected = 8 * size if size > 1 else 2
        low, size = size, min(max(expected, 2 * size), size_max)
        if not asked(size)[1]:
            return low + _between(asked, low, size, budget)
    return size


def _between(asked, low, size, budget):
    """Returns how much larger than `low`, which fits, the largest size below `size` is."""
    found, _ = largest(lambda more: asked(low + more - 1), size - low + 1, asked(size)[0], budget)
    return found - 1
