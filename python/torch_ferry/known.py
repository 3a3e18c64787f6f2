"""What is known of the values of one fake tensor, and how it goes from one to another.

The values are a real tensor on the CPU (`copies.Value`), an attribute of the fake one. `values.py`
computes them; here is what all others ask and say.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .asking import asking_line, refused
from .copies import Cell, Value

MASKS = (torch.bool, torch.uint8)
# Nodes whose formulas read what they saved on the host without an operator.
READ_IN_CXX = ("PackPaddedSequenceBackward0",)


def value_of(tensor):
    """The real tensor that a fake one would be, None where that is not known."""
    value = getattr(tensor, "_ferry_value", None)
    if value is None or not value.cell.known or tensor.requires_grad:
        return None
    return value.tensor


def carry(source, target):
    """`target` is a tensor of the same values. A mask of none brings the line that used it, for
    backward may ask for what it picks, and has no line of the script's."""
    if (value := getattr(source, "_ferry_value", None)) is not None:
        target._ferry_value = value
    line = getattr(source, "_ferry_line", None)
    if line is None and isinstance(source, FakeTensor) and source.dtype in MASKS \
            and value_of(source) is None:
        line = asking_line()
    if line is not None:
        target._ferry_line = line


def known(tensor, name):
    """The real tensor that it would be. Raises `ValueAsked`, as of the function `name`."""
    real = value_of(tensor) if isinstance(tensor, FakeTensor) else tensor
    if real is None:
        raise refused(name)
    return real


def know(fake, numbers):
    """The fake tensor's values are these."""
    with _disable_current_modes():
        fake._ferry_value = Value(torch.tensor(numbers, dtype=fake.dtype, device="cpu"), Cell())


def read_in_cxx(carrier, node):
    """A real tensor of the values that were carried there, if the formula of this node reads them;
    else None."""
    if node not in READ_IN_CXX or carrier.device.type != "cpu":
        return None
    with _disable_current_modes():
        return carrier._ferry_value.tensor.clone()


def take(tensor):
    """It stands for any value."""
    if any_value(tensor) and getattr(tensor, "_ferry_value", None) is not None:
        tensor._ferry_value.cell.known = False


def any_value(tensor):
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.requires_grad
