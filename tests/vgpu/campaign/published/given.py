"""What the programs of this folder have in common. Each imports a published file from the folder of
its version, which is on Python's path.
"""

import contextlib
import importlib
import pathlib
import sys
import types

import torch

SIZE = (64, 64)


def leave_out(*packages):
    """Of these packages the files are imported that are asked for, and not their __init__, which
    imports much besides.
    """
    for name in packages:
        package = sys.modules[name] = types.ModuleType(name)
        package.__path__ = [str(pathlib.Path(folder, *name.split("."))) for folder in sys.path]


def torchtunes_offloading():
    leave_out("torchtune", "torchtune.training")
    return importlib.import_module("torchtune.training._activation_offloading").OffloadActivations


class Scale(torch.autograd.Function):
    """Twice its input. Its gradient takes what it saved, a tensor of ones."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones_like(x))
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        (ones,) = ctx.saved_tensors
        return 2 * gradient * ones


def gradient(function, device, offload=None):
    """Of the sum of what it makes of a tensor of ones."""
    x = torch.ones(SIZE, device=device, requires_grad=True)
    with offload or contextlib.nullcontext():
        y = function(x)
    y.sum().backward()
    return x.grad


def told(mine, wanted):
    """Prints whether these tensors are those."""
    print(all(torch.equal(one.cpu(), other) for one, other in zip(mine, wanted, strict=True)))
