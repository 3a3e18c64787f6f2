"""Copies of what real tensors hold: a capture computes with these in their place.

A capture may write what it knows: a step counts its batches in a buffer. So it never has the memory
of a tensor that was there before. Each storage is copied once, and tensors that share the storage
share the copy, so that what is written through one is seen through the others. Of a storage that is
too large the window alone is copied. Others would not see a write to that: once one is written, no
window of the storage is known any more.
"""

import torch
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass
from torch.utils.weak import WeakIdKeyDictionary


class Cell:
    """Whether the tensors of one memory are known, whether that memory is only a window, and
    whether it is not known for nothing was written there yet (unwritten.py)."""

    __slots__ = ("known", "is_window", "is_unwritten")

    def __init__(self, known=True, is_window=False, is_unwritten=False):
        self.known, self.is_window, self.is_unwritten = known, is_window, is_unwritten


class Value:
    """A real tensor on the CPU. Those that share memory share `cell`."""

    def __init__(self, tensor, cell):
        self.tensor, self.cell = tensor, cell

    def __deepcopy__(self, memo):
        with _disable_current_modes():
            return Value(self.tensor.clone(), Cell(self.cell.known))


class Copies:
    def __init__(self, limit):
        """`limit`: the bytes of the largest storage that is copied whole, and of a window."""
        self.limit = limit
        self._of = WeakIdKeyDictionary()  # storage → (its bytes' copy or None, cell)

    def value(self, tensor):
        """A `Value` of a real tensor; None where it cannot be copied, or is known no more."""
        bytes_ = tensor.numel() * tensor.element_size()
        if (tensor.layout != torch.strided or tensor.is_quantized or bytes_ > self.limit
                or tensor.device.type == "meta" or is_traceable_wrapper_subclass(tensor)):
            return None
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
            storage = tensor.untyped_storage()
            if storage not in self._of:
                whole = storage.nbytes() <= self.limit
                self._of[storage] = (_copy(_bytes_of(tensor)) if whole else None,
                                     Cell(is_window=not whole))
            copy, cell = self._of[storage]
            if not cell.known:
                return None
            if copy is None:
                return Value(_copy(tensor.detach()), cell)
            window = torch.empty(0, dtype=tensor.dtype, device="cpu").set_(
                copy.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
            return Value(window, cell)

    def leave_out(self, tensor):
        """Of its storage nothing is to be known, and nothing is copied."""
        if tensor.layout != torch.strided or is_traceable_wrapper_subclass(tensor):
            return
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
        _, cell = self._of.setdefault(storage, (None, Cell()))
        cell.known = False


def _bytes_of(tensor):
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage())


def _copy(tensor):
    return tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()
