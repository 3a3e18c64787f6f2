"""Guards that the forward of a model opens and closes, for training loops that you do not edit.

    offloaded = ferry.offload_activations(model, window="64MiB")

Hooks on the model's forward open and close the guards, so the loop stays unmodified: a loop of
Accelerate, of Fabric, or a plain one.
"""

import contextlib
import threading
from unittest import mock

import torch

from .heads import leave_alone, left_alone
from .offload import offload as offload_with


class Guard:
    """A guard of one forward, which the model's call opens. As a context it closes an open guard.
    """

    def __init__(self, offload):
        self._offload = offload
        self._here = threading.local()  # a guard belongs to its thread

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
        """A context in which `torch.autograd.backward` first closes the guard. With `again` it
        opens the guard again at its end."""
        backward = torch.autograd.backward

        def closing(*args, **kwargs):
            self.close()
            backward(*args, **kwargs)
            if again:
                self.open()

        with mock.patch.object(torch.autograd, "backward", closing):
            yield

    def hooks(self, model, *, closes=True):
        """Registers hooks with which each forward of the model opens the guard and closes it.
        Returns their handles."""
        handles = [model.register_forward_pre_hook(self.open)]
        if closes:
            handles.append(model.register_forward_hook(self.close, always_call=True))
        return handles

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close(*error)

    def __deepcopy__(self, memo):
        return self  # copies of a model have the hook too, for example an average of its weights


def head_stays(model):
    """Registers hooks that leave the tensors of the model's output head on the device. Returns
    their handles."""
    return [handle for module in left_alone(model) for handle in leave_alone(module)]


class OffloadedActivations:
    """The hooks that `offload_activations` put on a model. `offload` is the `Offload`, which has
    the counts, and `remove()` takes the hooks off. It is not copied with the model."""

    def __init__(self, offload, handles):
        self.offload = offload
        self._handles = handles

    def remove(self):
        while self._handles:
            self._handles.pop().remove()

    def __repr__(self):
        return f"<torch_ferry.OffloadedActivations: {self.offload.statistics()}>"


def offload_activations(model, *, keep_head=True, offload=None, **options):
    """Offloads what autograd saves in each forward of the model, from now on.

    Saved tensors are copied to the host, and are back before backward needs them. Forwards without
    gradients are not changed. Returns an object whose `offload` is the `Offload`, and whose
    `remove()` ends the offloading.

    Call it last, with the model that the loop calls: what `Accelerator.prepare`, `Fabric.setup`,
    DistributedDataParallel or `torch.compile` returned.

    keep_head  True leaves the tensors that the output head saves on the device
               (`torch_ferry.heads`)
    offload    an `Offload` that was made before, instead of options
    options    options of `torch_ferry.offload`

    Raises TypeError for a plan, because a plan includes the loss: put
    `with torch_ferry.execute(plan):` around the forward and the loss."""
    if offload is not None and options:
        raise TypeError("offload= already has its options: "
                        f"{', '.join(sorted(options))} cannot be given beside it")
    if "plan" in options or getattr(offload, "plan", None) is not None:
        raise TypeError("plan: offload_activations takes no plan, because a plan includes the "
                        "loss: put `with torch_ferry.execute(plan):` around the forward and the "
                        "loss")
    if offload is None:
        offload = offload_with(**options)
    offload.exempt(model)
    handles = Guard(offload).hooks(model) + (head_stays(model) if keep_head else [])
    return OffloadedActivations(offload, handles)
