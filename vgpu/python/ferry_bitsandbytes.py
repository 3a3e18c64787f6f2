"""Lets bitsandbytes run under `ferry run`, by its own kernels for the CPU.

The CUDA kernels of bitsandbytes are called through ctypes, and its C++ code ends the process when a
launch fails. So its module of CUDA kernels is not loaded. Each of its operators has a stand-in
(ferry_extensions.py): the operator's own kernel for the CPU, or its kernel made of PyTorch's
operators. Shapes come from its fake implementations; memory and time are those of one kernel, not
of the fallback's temporaries. Operators without such a kernel fail by name.

Not covered: what calls the C library and no operator, such as paged optimizers.
"""

import importlib.abc
import importlib.machinery
import types

import torch

MODULE = "bitsandbytes.backends.cuda.ops"
KEYS = ("CPU", "CompositeExplicitAutograd")


def with_fallback():
    """(name, operator) of each operator of bitsandbytes that the CPU can compute."""
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("bitsandbytes::"):
            continue
        overload = schema.overload_name
        name = schema.name + (f".{overload}" if overload else "")
        if any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in KEYS):
            packet = getattr(torch.ops.bitsandbytes, schema.name.partition("::")[2])
            yield name, getattr(packet, overload or "default")


class Bitsandbytes(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module of CUDA kernels, in front of the real one."""

    def __init__(self, stand_in):
        self._stand_in = stand_in

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == MODULE else None

    def create_module(self, spec):
        return types.ModuleType(MODULE, "Ferry's stand-in for bitsandbytes' CUDA kernels.")

    def exec_module(self, module):
        # It is imported after the kernels for the CPU.
        for name, operator in list(with_fallback()):
            self._stand_in(name, operator)
