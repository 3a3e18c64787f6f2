"""Keeps the state of an optimizer on the host, or on disk.

    optimizer = torch_ferry.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-4))

The object stays the same optimizer: schedulers, `zero_grad`, parameter groups and `state_dict`
work as before. Its state (the moments of AdamW) lives in page-locked host memory. For each update
a piece of it visits the device, where the optimizer's own step updates it. So the results have the
bits of the plain optimizer. Copies run beside computing, in the order of the last step.

A piece is a part of a parameter if the update is element by element, as in AdamW. Else it is a
whole parameter. The core is shared/state/wards.h.
"""

import os
import weakref

import torch

from .host_state import HostState
from .sizes import size

# Optimizers that need all parameters at once, or gradients of another layout.
_REFUSED = {"LBFGS": "it updates all parameters together",
            "SparseAdam": "its gradients are sparse"}


def optimizer(inner, *, in_backward=False, ahead=None, behind=None, waiting=None, piece="64MiB",
              min_bytes="64KiB", pinned=True, disk=None):
    """Moves the state of an optimizer to the host, and returns the same optimizer.

    inner        a torch.optim.Optimizer: of torch.optim, or any class that keeps its state as
                 tensors in `state[parameter]`
    in_backward  True: a parameter is updated as soon as backward has its gradient, which is then
                 freed. `step` ends the step. Gradients cannot be clipped then, and with gradient
                 accumulation all backwards but the last must run under `optimizer.accumulate()`
    ahead        how many bytes of state are brought to the device before their update. Default: an
                 eighth of the state, at most 256 MiB
    behind       how many bytes may still be on the device while they are copied back. The same
                 default
    waiting      with in_backward, how many bytes of gradients may wait for their state. More
                 makes backward wait less for copies. Default: an eighth of the parameters, at
                 most 1 GiB
    piece        parameters of more bytes are updated in pieces of this size
    min_bytes    parameters whose state has fewer bytes keep it on the device
    pinned       uses page-locked host memory (CUDA only)
    disk         a folder: the state lives in a file there, which no crash leaves behind. CPU only

    Raises TypeError if it is no optimizer, or one that cannot be updated in pieces."""
    _check(inner)
    kind = type(inner)
    state = HostState(kind, in_backward, _bytes(ahead, "ahead"), _bytes(behind, "behind"),
                      _bytes(waiting, "waiting"), size(piece, "piece"),
                      size(min_bytes, "min_bytes"), pinned,
                      None if disk is None else os.fspath(disk))
    inner.__class__ = _class_of(kind)
    inner._ferry = state
    state.adopt(inner)
    return inner


def _bytes(given, name):
    return None if given is None else size(given, name)


def _check(inner):
    if not isinstance(inner, torch.optim.Optimizer):
        raise TypeError("expected a torch.optim.Optimizer, such as "
                        f"torch.optim.AdamW(model.parameters()); got {type(inner).__name__}")
    if isinstance(inner, HostOptimizer):
        raise TypeError("the state of this optimizer is on the host already")
    for kind in type(inner).__mro__:
        if kind.__module__.startswith("torch.optim") and kind.__name__ in _REFUSED:
            raise TypeError(f"{type(inner).__name__} cannot keep its state on the host: "
                            f"{_REFUSED[kind.__name__]}")
    for group in inner.param_groups:
        if group.get("differentiable"):
            raise TypeError("an optimizer with differentiable=True cannot keep its state on the "
                            "host: autograd would need it")
        for p in group["params"]:
            if type(p).__name__ == "DTensor" or hasattr(p, "device_mesh"):
                raise TypeError("a parameter is a DTensor, as under FSDP2: its state cannot be kept "
                                "on the host yet")


def _class_of(kind):
    """Returns the class of optimizers of this class whose state is on the host."""
    known = _classes.get(kind)
    if known is None:
        known = type(kind.__name__, (HostOptimizer, kind),
                     {"__module__": kind.__module__, "__doc__": kind.__doc__})
        _classes[kind] = known
    return known


_classes = weakref.WeakKeyDictionary()


class HostOptimizer:
    """What is different in an optimizer whose state is on the host. Its class also is the class
    that it had before."""

    def step(self, closure=None):
        """Updates every parameter that has a gradient, and ends the step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with self._ferry.hooks_around(self, closure):
            self._ferry.step(self)
        return loss

    def accumulate(self):
        """A context for backwards that only add to gradients, with in_backward=True."""
        return self._ferry.accumulating()

    def state_dict(self):
        """As torch's. The tensors are on the CPU, and are copies."""
        empty, self.state = self.state, self._ferry.whole_state(self)
        try:
            return super().state_dict()
        finally:
            self.state = empty

    def load_state_dict(self, state_dict):
        """As torch's. The state goes to the host, parameter by parameter."""
        groups = state_dict["param_groups"]
        super().load_state_dict({**state_dict, "state": {}})
        self._ferry.load(self, groups, state_dict["state"])

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        if "_ferry" in self.__dict__:
            self._ferry.watch(self, self.param_groups[-1]["params"])

    def host_statistics(self):
        """Returns the counts of each device, by its name."""
        return {str(device): wards.statistics() for device, wards in self._ferry.wards.items()}

    def __reduce_ex__(self, protocol):
        raise TypeError("an optimizer whose state is on the host cannot be pickled or copied: save "
                        "its state_dict()")

    def __repr__(self):
        return super().__repr__() + " with its state on the host"
