"""Guards around the forwards of a model that somebody else's loop calls.

    offloaded = ferry.offload_activations(model, window="64MiB")

Hooks of the model's forward open and close them, so the loop stays as it is: one of Accelerate's,
of Fabric's, or a plain one.
"""

import contextlib
import threading
from unittest import mock

import torch

from .heads import leave_alone, left_alone
from .offload import offload as offload_with


class Guard:
    """A guard of one forward, opened by the model's call; a context, which closes what is open."""

    def __init__(self, offload):
        self._offload = offload
        self._here = threading.local()  # a guard is its thread's

    def open(self, *_):
        if torch.is_grad_enabled() and not self._is_open():
            self._offload.__enter__()
            self._here.is_open = True

    def close(self, *error):
        if self._is_open():
            self._here.is_open = False
            failed = len(error) == 3 and isinstance(error[1], BaseException)
            self._offload.__exit__(*(error if failed else (None, None, None)))

    def _is_open(self):
        return getattr(self._here, "is_open", False)

    @contextlib.contextmanager
    def until_backward(self, again=False):
        """A context in which `torch.autograd.backward` closes it, and opens it `again`."""
        backward = torch.autograd.backward

        def closing(*args, **kwargs):
            self.close()
            backward(*args, **kwargs)
            if again:
                self.open()

        with mock.patch.object(torch.autograd, "backward", closing):
            yield

    def hooks(self, model, *, closes=True):
        """The handles of hooks by which each forward of the model opens it, and closes it."""
        handles = [model.register_forward_pre_hook(self.open)]
        if closes:
            handles.append(model.register_forward_hook(self.close, always_call=True))
        return handles

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close(*error)

    def __deepcopy__(self, memo):
        return self  # as a hook of a model's copy, an average of its weights say


def head_stays(model):
    """The handles of hooks by which what the model's output head saves is left alone."""
    return [handle for module in left_alone(model) for handle in leave_alone(module)]


class OffloadedActivations:
    """What `offload_activations` put on a model: `offload`, an `Offload` that counts, and
    `remove()`, after which the model is as it was. Of a copy of the model it is no part."""

    def __init__(self, offload, handles):
        self.offload = offload
        self._handles = handles

    def remove(self):
        while self._handles:
            self._handles.pop().remove()

    def __repr__(self):
        return f"<torch_ferry.OffloadedActivations: {self.offload.statistics()}>"


def offload_activations(model, *, keep_head=True, offload=None, **options):
    """From now on, what autograd saves in the model's forwards goes to the host and is back before
    backward needs it: an `OffloadedActivations`. Forwards without gradients are left alone.

    Call it last, with the model that the loop calls: what `Accelerator.prepare`, `Fabric.setup`,
    DistributedDataParallel or `torch.compile` returned.

    keep_head  what the model's output head saves stays (`torch_ferry.heads`)
    offload    an `Offload` that was made already, in the place of options
    options    of `torch_ferry.offload`

    Raises TypeError for a plan: its step has the loss as well, so put `with torch_ferry.run(plan):`
    around the forward and the loss."""
    if offload is not None and options:
        raise TypeError("offload= has its options already: "
                        f"{', '.join(sorted(options))} cannot be given beside it")
    if "plan" in options or getattr(offload, "plan", None) is not None:
        raise TypeError("a plan's step has the loss as well: put `with torch_ferry.run(plan):` "
                        "around the forward and the loss")
    if offload is None:
        offload = offload_with(**options)
    offload.exempt(model)
    handles = Guard(offload).hooks(model) + (head_stays(model) if keep_head else [])
    return OffloadedActivations(offload, handles)
