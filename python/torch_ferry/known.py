"""The known values of a fake tensor, and how they pass from one tensor to another.

The values are a real tensor on the CPU (`copies.Value`), in the attribute `_ferry_value` of the
fake tensor. `values.py` computes them. Modules that only need them use these functions; values.py,
unwritten.py and untouched.py also read or set the attribute themselves.

If values are not known, `value_of` returns None and `known` raises `ValueAsked`.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .asking import asking_line, refused
from .copies import Cell, Value

MASKS = (torch.bool, torch.uint8)
# Nodes whose backward reads a saved tensor on the host without calling an operator.
READ_IN_CXX = ("PackPaddedSequenceBackward0",)


def value_of(tensor):
    """Returns the real tensor with the values of a fake one, or None if they are not known."""
    value = getattr(tensor, "_ferry_value", None)
    if value is None or not value.cell.known or tensor.requires_grad:
        return None
    return value.tensor


def carry(source, target):
    """Gives `target` the values of `source`. A mask without values carries the line that used it:
    if backward asks for what the mask selects, there is no line of the script to report."""
    if (value := getattr(source, "_ferry_value", None)) is not None:
        target._ferry_value = value
    line = getattr(source, "_ferry_line", None)
    if line is None and isinstance(source, FakeTensor) and source.dtype in MASKS \
            and value_of(source) is None:
        line = asking_line()
    if line is not None:
        target._ferry_line = line


def known(tensor, name):
    """Returns the real tensor with its values. Raises `ValueAsked` for the function `name` if they
    are not known."""
    real = value_of(tensor) if isinstance(tensor, FakeTensor) else tensor
    if real is None:
        raise refused(name)
    return real


def know(fake, numbers):
    """Sets the values of a fake tensor."""
    with _disable_current_modes():
        fake._ferry_value = Value(torch.tensor(numbers, dtype=fake.dtype, device="cpu"), Cell())


def read_in_cxx(carrier, node):
    """Returns a real tensor with the values of `carrier` if the backward of this node reads them in
    C++, else None."""
    if node not in READ_IN_CXX or carrier.device.type != "cpu":
        return None
    with _disable_current_modes():
        return carrier._ferry_value.tensor.clone()


def take(tensor):
    """Marks an input of the step: its values are unknown if it can have any values in training."""
    if any_value(tensor) and getattr(tensor, "_ferry_value", None) is not None:
        tensor._ferry_value.cell.known = False


def any_value(tensor):
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.requires_grad
