"""Puts back what a capture's run of the user's code changed, besides the data of tensors.

The data of tensors is safe, because the run computes with copies (`torch_ferry.copies`,
`torch_ferry.twins`). The run may still seed a random generator, switch a module of the loss to
eval, add a hook to it, bind another tensor to the name of a buffer, or accumulate the gradient of a
fake parameter. When the capture ends or raises, all of this is put back in the objects that the
user's objects reach (`torch_ferry.reach`). So are the generators of Python, numpy and PyTorch.

Not put back: what the code stores in other objects, such as a list that it appends to.
"""

import collections
import contextlib
import random
import sys

import torch
from torch import nn

from .reach import reached


@contextlib.contextmanager
def untouched(*objects):
    """A context that puts everything back at its end. `objects` are those from which the user's
    objects are reached: the module, its inputs, the loss function."""
    with contextlib.ExitStack() as stack:
        for put_back in _keepers(objects):
            stack.callback(put_back)
        yield


def _keepers(objects):
    yield _generators_of_the_process()
    for each in reached(*objects):
        kind = type(each)
        if issubclass(kind, torch.Tensor):
            yield _tensor(each)
        elif issubclass(kind, nn.Module):
            yield _module(each)
        elif issubclass(kind, torch.Generator):
            yield _state(each.get_state(), each.set_state)
        elif issubclass(kind, random.Random) and not issubclass(kind, random.SystemRandom):
            yield _state(each.getstate(), each.setstate)
        elif _is_numpys(each, "BitGenerator", "RandomState"):
            yield _numpys(each)


def _state(state, put):
    return lambda: put(state)


def _generators_of_the_process():
    states = [(torch.set_rng_state, torch.get_rng_state()), (random.setstate, random.getstate())]
    if (numpy := sys.modules.get("numpy")) is not None:
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if torch.cuda.is_initialized() and torch._C._cuda_getDeviceCount() > 0:
        states.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))

    def put_back():
        for put, state in states:
            put(state)
    return put_back


def _is_numpys(each, *names):
    numpy = sys.modules.get("numpy.random")
    return numpy is not None and issubclass(type(each),
                                            tuple(getattr(numpy, name) for name in names))


def _numpys(each):
    if hasattr(each, "get_state"):
        return _state(each.get_state(), each.set_state)
    state = each.state
    return lambda: setattr(each, "state", state)


def _tensor(tensor):
    """Returns a function that restores the tensor's `requires_grad` and gradient, and the known
    values of a fake tensor."""
    is_leaf, requires_grad = tensor.is_leaf, tensor.requires_grad
    grad = tensor.grad if is_leaf else None
    value = getattr(tensor, "_ferry_value", None)
    known, bytes_ = (value.cell.known, value.tensor.clone()) if value else (None, None)

    def put_back():
        if is_leaf and tensor.is_leaf:
            if tensor.requires_grad != requires_grad:
                tensor.requires_grad_(requires_grad)
            if tensor.grad is not grad:
                tensor.grad = grad
        if value:
            value.cell.known, tensor._ferry_value = known, value
            value.tensor.copy_(bytes_)
    return put_back


def _module(module):
    """Returns a function that restores the module's attributes, and the contents of its dicts,
    lists and sets: buffers, hooks."""
    fields = dict(vars(module))
    held = [(each, each.copy()) for each in fields.values()
            if type(each) in (dict, collections.OrderedDict, list, set)]

    def put_back():
        if not _same(vars(module), fields):
            vars(module).clear()
            vars(module).update(fields)
        for each, before in held:
            if isinstance(each, list):
                each[:] = before
            elif isinstance(each, set) and each != before or \
                    isinstance(each, dict) and not _same(each, before):
                each.clear()
                each.update(before)
    return put_back


def _same(left, right):
    """Returns True if two dicts have the same objects; tensors are not compared with `==`."""
    return list(left) == list(right) and all(left[key] is right[key] for key in left)
