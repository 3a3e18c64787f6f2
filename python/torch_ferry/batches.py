"""Finds the largest batch that fits, if the requested batch does not.

`torch_ferry.plan` names it in the error `DoesNotFit`.

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
