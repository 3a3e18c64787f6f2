"""Makes "cuda" work for fake tensors, with and without a GPU.

The tensors of a capture are fake and say that they are on "cuda". So autocast("cuda") casts, and
PyTorch's operators make their choices as on a GPU. With a GPU nothing more is needed. Without one,
`available()` makes torch.cuda say that there is a GPU while the capture runs, and real/fake_cuda
answers the calls that autograd makes to the device. Nothing is ever computed.
"""

import contextlib
import ctypes
import pathlib
import types
from unittest import mock

import torch
from torch._subclasses import fake_tensor

from . import objects
from .asking import asking_line
from .objects import Unavailable

CAPABILITY = (9, 0)  # the answer to scripts that ask, if no card is named


def has_gpu():
    """Returns True if there is a real GPU, also while torch.cuda pretends to have one."""
    return torch.version.cuda is not None and torch._C._cuda_getDeviceCount() > 0


class FakeMode(fake_tensor.FakeTensorMode):
    """PyTorch's fake mode. It initialises no device without a GPU, whatever torch.cuda says."""

    def __init__(self):
        super().__init__(allow_non_fake_inputs=True)
        self._has_gpu = has_gpu()
        # The converter's memo is off. It has weak references, and PyTorch cannot change the device
        # or dtype of a tensor in place, as `module.to` does, if there is one to it.
        self.fake_tensor_converter.set_tensor_memo = lambda meta, fake: None

    def __deepcopy__(self, memo):
        return self  # a copy of a tensor has the same mode

    @property
    def avoid_device_init(self):
        return not self._has_gpu


_depth = 0
_card = None  # the compute capability of the named card


@contextlib.contextmanager
def of_card(capability):
    """A context that chooses kernels as on a card of this compute capability, such as (9, 0).
    None changes nothing."""
    global _card
    before, _card = _card, capability or _card
    try:
        yield
    finally:
        _card = before


def card():
    """Returns the compute capability of the named card, or else of the GPU in this machine; None
    if there is neither."""
    if _card is None and has_gpu():
        return torch.cuda.get_device_capability()
    return _card


def _told():
    return _card or CAPABILITY


@contextlib.contextmanager
def available():
    """A context in which torch.cuda has a device, real or not. Backwards run on this thread."""
    global _depth
    with torch.autograd.set_multithreading_enabled(False), contextlib.ExitStack() as stack:
        if _depth == 0 and not has_gpu():
            _pretend(stack)
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1


def _pretend(stack):
    if torch.version.cuda is None:
        raise Unavailable("this torch was built without CUDA, so its operators choose kernels as "
                          "on a CPU: install a torch with CUDA (no GPU is needed), or capture with "
                          "--device cpu")
    library = _library()
    before = library.ferry_fake_cuda_guard(None)
    stack.callback(library.ferry_fake_cuda_guard, before)
    run_backward = torch.autograd._engine_run_backward

    def run_with_our_hooks(*arguments, **keywords):
        before = library.ferry_fake_cuda_hooks(None)
        try:
            return run_backward(*arguments, **keywords)
        finally:
            library.ferry_fake_cuda_hooks(before)

    stack.enter_context(mock.patch.object(torch.autograd, "_engine_run_backward",
                                          run_with_our_hooks))
    stack.enter_context(mock.patch.object(fake_tensor, "init_gpu_context", lambda device: None))
    stack.enter_context(mock.patch.object(fake_tensor, "run_fallback_kernel", _no_formula))
    for name, answer in _ANSWERS.items():
        stack.enter_context(mock.patch.object(torch.cuda, name, answer))


def _no_formula(mode, func, *arguments):
    """Replaces PyTorch's fallback, which runs the operator on a GPU to see what it makes."""
    raise Unavailable(f"{asking_line()} calls {func}, and PyTorch has no formula for the result of "
                      "this operator on fake tensors of a GPU")


def _always(value):
    return lambda *arguments, **keywords: value


_ANSWERS = {
    "is_available": _always(True), "is_initialized": _always(True), "device_count": _always(1),
    "current_device": _always(0), "is_bf16_supported": _always(True),
    "get_device_capability": lambda *arguments, **keywords: _told(),
    "get_device_name": _always("fake GPU of torch_ferry.capture"),
    "get_device_properties": lambda *arguments, **keywords: types.SimpleNamespace(
        name="fake GPU of torch_ferry.capture", major=_told()[0], minor=_told()[1],
        total_memory=80 << 30, multi_processor_count=132, warp_size=32),
    "mem_get_info": _always((80 << 30, 80 << 30)), "memory_allocated": _always(0),
    "max_memory_allocated": _always(0), "memory_reserved": _always(0),
    "max_memory_reserved": _always(0), "memory_stats": _always({}),
    "_lazy_init": _always(None), "init": _always(None), "set_device": _always(None),
    "synchronize": _always(None), "empty_cache": _always(None), "ipc_collect": _always(None),
    "reset_peak_memory_stats": _always(None), "manual_seed": _always(None),
    "manual_seed_all": _always(None),
}


def _library():
    """Loads real/fake_cuda."""
    wheel = pathlib.Path(torch.__file__).parent
    library = objects.load("_fake_cuda.so", ("real/fake_cuda/fake_cuda.cpp",),
                           ("-I", wheel / "include", "-L", wheel / "lib", "-ltorch_cpu", "-lc10"),
                           ", and there is no GPU: capture with an installed or built torch_ferry, "
                           "or with --device cpu")
    for function in (library.ferry_fake_cuda_guard, library.ferry_fake_cuda_hooks):
        function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
    return library
