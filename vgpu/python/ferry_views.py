"""Reports how a script uses page-locked memory without calling a PyTorch operator.

The log would not have such uses otherwise, and `ferry run` would miss races on that memory.

    tolist(), a storage's elements, torch.save    an access by the host, like that of an operator
    numpy(), np.asarray, DLPack                   an access now, and a view whose use is not known
    data_ptr()                                    a view that ends at once

A view is a NumPy array, in whatever form the script requested it. The array owns no memory, and
everything made of it (a slice, a memoryview, what takes it by DLPack) keeps it alive. So the view
ends when the array dies. How long an address is used is not known: it is checked against the work
that is pending when the script requests it, and no more. PyTorch's own code requests many
addresses, to compare them; these do not count.

Not seen: what C++ does with a tensor's memory, the address that a NumPy array has (`ctypes`,
`__array_interface__`), and calls of `torch._C.TensorBase` in place of `torch.Tensor`.
"""

import ctypes
import functools
import itertools
import os
import sys
import weakref

import torch

TORCH = os.path.dirname(torch.__file__) + os.sep
# NumPy has no bfloat16 and no small floats. Another type of the same size is used for each.
OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}


class _PageLocked:
    """Reports uses of page-locked memory to the log, and of no other memory."""

    def __init__(self, library):
        library.ferry_vgpu_is_page_locked.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        for call in (library.ferry_vgpu_host_access, library.ferry_vgpu_host_view):
            call.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p]
            call.restype = None
        self._library = library
        self._tensor_address = torch.Tensor.data_ptr
        self._storage_address = torch.UntypedStorage.data_ptr
        self._views, self._numbers = {}, itertools.count()

    def _bytes(self, owner):
        """Returns where a tensor's or a storage's elements lie; None if not page-locked."""
        if isinstance(owner, torch.Tensor):
            with torch._C.DisableTorchFunctionSubclass():
                return self._bytes_of_tensor(owner)
        if isinstance(owner, torch.TypedStorage):
            owner = owner._untyped_storage
        if owner.device.type != "cpu":
            return None
        return self._checked(self._storage_address(owner), owner.nbytes())

    def _bytes_of_tensor(self, tensor):
        if tensor.device.type != "cpu" or tensor.layout != torch.strided or not tensor.numel():
            return None
        try:
            address = self._tensor_address(tensor)
        except RuntimeError:  # it has no memory, as a FakeTensor
            return None
        if self._checked(address, 1) is None:
            return None
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        return address, (last + 1) * tensor.element_size()

    def _checked(self, address, count):
        if address and self._library.ferry_vgpu_is_page_locked(address, count):
            return address, count
        return None

    def access(self, owner, writes, name):
        where = self._bytes(owner)
        if where:
            self._library.ferry_vgpu_host_access(writes, *where, name)

    def view(self, tensor, array, name):
        where = self._bytes(tensor)
        if not where:
            return
        self._library.ferry_vgpu_host_access(False, *where, name)
        self._library.ferry_vgpu_host_view(True, *where, name)
        number = next(self._numbers)

        def end(_):
            self._library.ferry_vgpu_host_view(False, *where, name)
            del self._views[number]

        self._views[number] = weakref.ref(array, end)

    def address(self, owner, name):
        where = self._bytes(owner)
        asks = sys._getframe(2).f_code.co_filename  # the caller of the method that wraps PyTorch's
        if where and not asks.startswith(TORCH):
            self._library.ferry_vgpu_host_view(True, *where, name)
            self._library.ferry_vgpu_host_view(False, *where, name)

    def is_of(self, tensor):
        return self._bytes(tensor) is not None


def _before(owner, name, tell):
    """Wraps a method of `owner`: each call first calls `tell` with the object."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def call(self, *arguments, **named):
        tell(self)
        return method(self, *arguments, **named)

    setattr(owner, name, call)


def _watch_numpy(memory):
    numpy = torch.Tensor.numpy

    @functools.wraps(numpy)
    def call(self, *arguments, **named):
        array = numpy(self, *arguments, **named)
        memory.view(self, array, b"numpy")
        return array

    torch.Tensor.numpy = call
    return numpy


def _watch_dlpack(memory, numpy):
    def through_numpy(tensor):
        alike = tensor.detach().view(OF_SIZE[tensor.element_size()])
        array = numpy(alike)
        memory.view(alike, array, b"dlpack")
        return torch.from_numpy(array).view(tensor.dtype)

    def watched(to_dlpack):
        @functools.wraps(to_dlpack)
        def call(tensor, *arguments, **named):
            plain = isinstance(tensor, torch.Tensor) and not (tensor.requires_grad or
                                                              tensor.is_conj() or tensor.is_neg())
            if plain and not named.get("copy") and memory.is_of(tensor):
                tensor = through_numpy(tensor)
            return to_dlpack(tensor, *arguments, **named)
        return call

    torch._C._to_dlpack_versioned = watched(torch._C._to_dlpack_versioned)
    torch._C._to_dlpack = torch.to_dlpack = watched(torch._C._to_dlpack)
    torch.utils.dlpack.to_dlpack = torch._C._to_dlpack


def _watch_files(memory):
    write_record = torch._C.PyTorchFileWriter.write_record

    def call(self, name, data, *arguments, **named):
        if isinstance(data, torch.UntypedStorage):
            memory.access(data, False, b"save")
        return write_record(self, name, data, *arguments, **named)

    torch._C.PyTorchFileWriter.write_record = call


def watch(library):
    """Starts the reports, for the rest of the process."""
    memory = _PageLocked(library)
    _watch_dlpack(memory, _watch_numpy(memory))
    _watch_files(memory)
    storage = torch.UntypedStorage
    for owner, name, writes in ((torch.Tensor, "tolist", False), (torch.Tensor, "apply_", True),
                                (storage, "__getitem__", False), (storage, "__setitem__", True),
                                (storage, "fill_", True), (storage, "_write_file", False)):
        _before(owner, name, functools.partial(memory.access, writes=writes, name=name.encode()))
    for owner in (torch.Tensor, storage, torch.TypedStorage):
        _before(owner, "data_ptr", functools.partial(memory.address, name=b"data_ptr"))
