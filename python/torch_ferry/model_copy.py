"""The copy of a model that a capture runs: its tensors are fake ones.

Copying runs code of the model's authors (`__deepcopy__`, `__getstate__`, `__setstate__`) and of
whatever hangs on it, and some of that cannot be copied. Then the error says which attribute it was
and what can be done, for Python's own says neither.
"""

import copy

import torch
from torch._subclasses.fake_tensor import FakeCopyMode
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .asking import where_raised
from .program import CaptureError


class _Mode(FakeCopyMode):
    """PyTorch's, which lets no subclass of tensors or proxy answer while it copies: code that is
    built then, as torch.fx does it, needs them."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch._C.TensorBase.clone, torch.Tensor.__deepcopy__) \
                and isinstance(args[0], torch.Tensor):
            return super().__torch_function__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))


def copy_of(module, mode):
    """`module` with a fake tensor of `mode` for each of its own. Raises CaptureError."""
    try:
        return _copy(module, mode, _of_classes(module, mode))
    except Exception as error:
        name, error = _culprit(module, mode) or (type(module).__name__, error)
        place = where_raised(error)
        place = "" if place.startswith(copy.__file__) or place == "the step" else f"{place}: "
        raise CaptureError(
            f"{place}the model cannot be copied, and a capture runs a copy of it. {name} raises "
            f"{type(error).__name__}: {error}. Make the model under `with "
            "torch_ferry.capture.fake_mode():`, whose models are not copied; or take away what "
            "cannot be copied, or give its class a __deepcopy__") from error


def _copy(each, mode, made=()):
    with _Mode(mode):
        memo = {id(real): fake for real, fake in made}
        for real, fake in made:
            vars(fake).update(copy.deepcopy(vars(real), memo))
        return copy.deepcopy(each, memo)


def _of_classes(module, mode):
    """(parameter, its fake) of those whose class copies them itself: bitsandbytes' four bits are
    made of a real tensor, whose bytes are then replaced, and that would stay real."""
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
    """(its name, what it raises) of the innermost attribute or part that cannot be copied."""
    for path, part in reversed([*module.named_modules()]):
        path = ".".join(filter(None, (type(module).__name__, path)))
        held = [(key, value) for key, value in vars(part).items() if key != "_modules"]
        for name, value in [*((f"{path}.{key}", value) for key, value in held), (path, part)]:
            try:
                _copy(value, mode)
            except Exception as error:
                return name, error
    return None
