"""Copies a model for a capture, with fake tensors in place of real ones.

Copying runs code of the model's authors (`__deepcopy__`, `__getstate__`, `__setstate__`) and of all
objects that the model holds, and some objects cannot be copied. The error then names the attribute
and says what to do, because Python's own error does neither.
"""

import copy

import torch
from torch._subclasses.fake_tensor import FakeCopyMode
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .asking import where_raised
from .program import CaptureError


class _Mode(FakeCopyMode):
    """PyTorch's copy mode, but all other calls go to tensor subclasses and proxies as usual: code
    that is built during the copy, as torch.fx does, needs them."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch._C.TensorBase.clone, torch.Tensor.__deepcopy__) \
                and isinstance(args[0], torch.Tensor):
            return super().__torch_function__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))


def copy_of(module, mode):
    """Returns a copy of `module` with fake tensors of `mode`. Raises CaptureError if it cannot."""
    try:
        return _copy(module, mode, _of_classes(module, mode))
    except Exception as error:
        name, error = _culprit(module, mode) or (type(module).__name__, error)
        place = where_raised(error)
        place = "" if place.startswith(copy.__file__) or place == "the step" else f"{place}: "
        raise CaptureError(
            f"{place}the model cannot be copied, and a capture runs a copy of it. {name} raises "
            f"{type(error).__name__}: {error}. Make the model under `with "
            "torch_ferry.capture.fake_mode():`, then it is not copied; or remove what cannot be "
            "copied, or give its class a __deepcopy__") from error


def _copy(each, mode, made=()):
    with _Mode(mode):
        memo = {id(real): fake for real, fake in made}
        for real, fake in made:
            vars(fake).update(copy.deepcopy(vars(real), memo))
        return copy.deepcopy(each, memo)


def _of_classes(module, mode):
    """Returns (parameter, fake) for the parameters whose class copies itself. bitsandbytes makes a
    copy of a 4-bit parameter from a real tensor, so that copy would be real."""
    plain = (torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__)
    made = []
    for real in module.parameters():
        if type(real).__deepcopy__ not in plain and not (
                is_traceable_wrapper_subclass(real) or is_lazy(real)):
            with torch._C.DisableTorchFunction():
                fake = mode.from_tensor(real.detach().as_subclass(torch.Tensor))
                made.append((real, torch.nn.Parameter(fake, real.requires_grad)))
    return made


def _culprit(module, mode):
    """Returns (name, error) of the innermost attribute or module that cannot be copied, or None."""
    for path, part in reversed([*module.named_modules()]):
        path = ".".join(filter(None, (type(module).__name__, path)))
        held = [(key, value) for key, value in vars(part).items() if key != "_modules"]
        for name, value in [*((f"{path}.{key}", value) for key, value in held), (path, part)]:
            try:
                _copy(value, mode)
            except Exception as error:
                return name, error
    return None
