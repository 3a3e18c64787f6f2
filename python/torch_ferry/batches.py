"""The largest batch whose step fits, where the one that was asked for does not.

The first dimension that the step's inputs share is the batch. Smaller ones are captured and planned
as the whole one was; what they need is nearly linear in their size, so few are tried.
"""

import collections
import types

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

# So many guesses are by a straight line through what two sizes need, and the others by halves.
_BY_LINE = 4


def batch_of(inputs):
    """The size that most of the tensors have in their first dimension; None: there is none."""
    sizes = collections.Counter(leaf.shape[0] for leaf in tree_leaves(inputs)
                                if isinstance(leaf, torch.Tensor) and leaf.dim())
    return sizes.most_common(1)[0][0] if sizes else None


def cut(inputs, batch, size):
    """The first `size` samples of inputs whose batch is `batch`."""
    def smaller(tensor):
        other = isinstance(tensor, torch.nn.Parameter) or not tensor.dim()
        if other or tensor.shape[0] != batch:
            return tensor
        return tensor.detach()[:size].clone().requires_grad_(tensor.requires_grad)
    return tree_map_only(torch.Tensor, smaller, inputs)


def cut_function(function, batch, size):
    """A function that reads fewer samples of what the given one has from outside: labels, say."""
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
    except ValueError:  # it is empty yet
        return cell


def largest(least, batch, least_bytes, budget):
    """(size, bytes): the largest batch below `batch` that fits, and what it needs; (0, bytes) where
    one sample does not fit.

    least        a function of a size: (what its step needs at least, whether it fits)
    least_bytes  what the whole batch needs
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
