"""Replaces functions that read the memory of a tensor, which a fake tensor does not have.

`tolist`, `torch.tensor` of tensors and numpy's conversions read it from Python. Some composite
functions of PyTorch read it in C++ before they call an operator: the lengths of CTC's loss, the
batch sizes of packed sequences, the positions of `tensor_split`. Here these functions get the known
values. If the values are not known, the step is rejected with its line (asking.py).

Some of these functions call other operators if a tensor is of a subclass, as fake tensors are. Here
they call the operators that they call in training.
"""

import functools

import torch
import torch.nn.functional as functional
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map_only

from . import ctc
from .asking import refused
from .known import know, known, value_of

FUNCTIONS = torch._C._VariableFunctions


class Reads(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        reader = READERS.get(func)
        if reader is None:
            return func(*args, **(kwargs or {}))
        return reader(func, *args, **(kwargs or {}))


def _memory(func, tensor, *args, **kwargs):
    tensor = known(tensor, func.__name__)
    with _disable_current_modes():
        return func(tensor, *args, **kwargs)


def _dlpack(func, tensor, *args, **kwargs):
    if tensor.device.type != "cpu":
        raise refused("__dlpack__")
    return _memory(func, tensor, *args, **kwargs)


def _format(func, tensor, spec):
    """Formats a tensor of one number like the number. Without a format, no unknown value is read.
    """
    if tensor.dim() or not spec and value_of(tensor) is None:
        return func(tensor, spec)
    return tensor.item().__format__(spec)


def _tensor(func, data, *args, dtype=None, **kwargs):
    """Makes a tensor of lists that contain tensors."""
    if isinstance(data, (list, tuple)) and any(map(_is_fake, leaves := tree_leaves(data))):
        if dtype is None:
            dtype = functools.reduce(torch.promote_types, map(_dtype, leaves))
        data = tree_map_only(FakeTensor, lambda t: t.tolist() if t.dim() else t.item(), data)
    return func(data, *args, dtype=dtype, **kwargs)


def _is_fake(leaf):
    return isinstance(leaf, FakeTensor)


def _dtype(leaf):
    return leaf.dtype if isinstance(leaf, torch.Tensor) else torch.tensor(leaf).dtype


def _ctc_loss(func, *args, **kwargs):
    return ctc.loss(*args, **kwargs)


def _recurrent(func, data, second, *args, **kwargs):
    """Runs a recurrent layer. For a packed sequence, `second` has the number of rows of each step;
    otherwise it is the first state."""
    if isinstance(second, torch.Tensor) and not second.is_floating_point():
        second = known(second, func.__name__)
    return func(data, second, *args, **kwargs)


def _pad_packed_sequence(func, data, batch_sizes, batch_first, padding_value, total_length):
    """Does step by step what aten/src/ATen/native/PackedSequence.cpp does. That function writes
    the lengths without calling an operator."""
    sizes = known(batch_sizes, "pad_packed_sequence").tolist()
    steps = max(total_length, len(sizes)) if total_length > 0 else len(sizes)
    if 0 < total_length < len(sizes):
        raise RuntimeError("Expected total_length to be at least the length of the longest sequence "
                           f"in input, but got total_length={total_length} and max sequence length "
                           f"being {len(sizes)}")
    output = torch.full([steps, sizes[0], *data.shape[1:]], padding_value, dtype=data.dtype,
                        device=data.device)
    lengths = torch.empty(sizes[0], dtype=torch.int64, device="cpu")
    ends, offset, since = [], 0, 0
    for step, size in enumerate([*sizes[1:], 0], 1):
        before = sizes[step - 1]
        if size == before:
            continue
        rows = data.narrow(0, offset, before * (step - since))
        output[since:step, :before].copy_(rows.view(step - since, before, *data.shape[1:]))
        offset, since = offset + before * (step - since), step
        ends = [step] * (before - size) + ends
    know(lengths, ends)
    return output.transpose(0, 1) if batch_first else output, lengths


def _tensor_split(func, tensor, places, *args, **kwargs):
    if isinstance(places, torch.Tensor):
        places = known(places, "tensor_split").tolist()
    return func(tensor, places, *args, **kwargs)


def _one_hot(func, tensor, num_classes=-1):
    if tensor.numel() == 0:
        return func(tensor, num_classes)
    if tensor.device.type == "cpu":
        tensor.min()  # PyTorch checks that none is negative; `max` below, that none is too large
    if num_classes == -1:
        num_classes = int(tensor.max().item()) + 1
    elif tensor.device.type == "cpu":
        tensor.max()
    zeros = torch.zeros([*tensor.shape, num_classes], dtype=tensor.dtype, device=tensor.device)
    return zeros.scatter_(-1, tensor.unsqueeze(-1), 1)


READERS = {
    **dict.fromkeys((torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__), _memory),
    **dict.fromkeys((torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__), _dlpack),
    torch.Tensor.__format__: _format, torch.tensor: _tensor,
    **dict.fromkeys((FUNCTIONS.ctc_loss, functional.ctc_loss), _ctc_loss),
    **dict.fromkeys((FUNCTIONS.lstm, FUNCTIONS.gru, FUNCTIONS.rnn_tanh, FUNCTIONS.rnn_relu),
                    _recurrent),
    FUNCTIONS._pad_packed_sequence: _pad_packed_sequence,
    **dict.fromkeys((FUNCTIONS.tensor_split, torch.Tensor.tensor_split), _tensor_split),
    torch._C._nn.one_hot: _one_hot,
}
