"""Puts the step's own tensor in the place of one of Python's, before autograd sees that.

A step uses tensors that were there before it and that nobody handed it: in closures, in globals, in
the lists of other modules. The capture has a fake one for each (`Trace.fake`), and whatever writes,
counts versions, makes a graph or accumulates a gradient has to do so to that one. A call that gives
the tensor itself back, as those in place do, gives the caller's own back: Python may bind it to a
name that outlives the capture.

What reaches the dispatcher by another way (an autograd.Function's arguments, containers that are
neither list, tuple nor dict) is replaced there, beneath autograd.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only


class Twins(TorchFunctionMode):
    def __init__(self, twin):
        """`twin`: makes a fake tensor of one of Python's, always the same one."""
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
