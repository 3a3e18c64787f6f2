"""Replaces real tensors of the script by the step's fake tensors, before autograd sees them.

A step uses tensors that existed before it and that are no arguments: in closures, in globals, in
lists of other modules. The capture has one fake tensor for each (`Trace.fake`). Writes, version
counts, graph nodes and gradients have to go to the fake tensor. If a call returns its argument, as
calls in place do, the caller gets the real tensor back, because Python may bind it to a name that
outlives the capture.

Tensors that reach the dispatcher in another way (arguments of an autograd.Function, containers
other than list, tuple and dict) are replaced there, below autograd.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only


class Twins(TorchFunctionMode):
    def __init__(self, twin):
        """`twin` returns the fake tensor of a real one, always the same."""
        super().__init__()
        self.twin = twin

    def __torch_function__(self, func, types, args=(), kwargs=None):
        replaced = {}  # id of a fake → the caller's tensor
        args = tuple([self._put(each, replaced) for each in args])
        kwargs = {key: self._put(each, replaced) for key, each in (kwargs or {}).items()}
        result = func(*args, **kwargs)
        if not replaced:
            return result
        return tree_map_only(FakeTensor, lambda fake: replaced.get(id(fake), fake), result)

    def _put(self, given, replaced):
        if isinstance(given, torch.Tensor):
            if isinstance(given, FakeTensor):
                return given
            fake = self.twin(given)
            replaced[id(fake)] = given
            return fake
        if type(given) in (list, tuple):
            return type(given)([self._put(each, replaced) for each in given])
        if type(given) is dict:
            return {key: self._put(each, replaced) for key, each in given.items()}
        return given
