"""Copies of the data of real tensors, for a capture to compute with.

A capture may write to tensors whose values it knows: a step may count batches in a buffer. It must
not change the user's tensors, so it works on copies. Each storage is copied once, and all tensors
of the storage share the copy, so that a write through one is seen through the others. If a storage
is too large, only the window of one tensor is copied. Other windows would not see a write to this
copy, so after such a write no window of the storage is known any more.
"""

import torch
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass
from torch.utils.weak import WeakIdKeyDictionary


class Cell:
    """The state of one memory: `known` if its values are known, `is_window` if it is a copy of a
    window only, `is_unwritten` if it is unknown because nothing was written yet (unwritten.py)."""

    __slots__ = ("known", "is_window", "is_unwritten")

    def __init__(self, known=True, is_window=False, is_unwritten=False):
        self.known, self.is_window, self.is_unwritten = known, is_window, is_unwritten


class Value:
    """A real tensor on the CPU. Values that share memory share `cell`."""

    def __init__(self, tensor, cell):
        self.tensor, self.cell = tensor, cell

    def __deepcopy__(self, memo):
        with _disable_current_modes():
            return Value(self.tensor.clone(), Cell(self.cell.known))


class Copies:
    def __init__(self, limit):
        """`limit`: the bytes of the largest storage that is copied whole, and of a window."""
        self.limit = limit
        self._of = WeakIdKeyDictionary()  # storage → (copy of its bytes or None, cell)

    def value(self, tensor):
        """Returns the `Value` of a real tensor; None if it cannot be copied or is unknown now."""
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
        """Marks the storage of this tensor as unknown, so that it is never copied."""
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
