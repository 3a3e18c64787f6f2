"""Finds an extension's operators under `ferry run` (vgpu/operators/extensions.h).

Nothing reports when the kernels of an extension are registered. So each time Python has looked an
operator up or registered a kernel, and may call the operator next, the library looks for them. It
stays in force for the rest of the process.
"""

import ctypes
import functools

import torch


def watch(look):
    look.restype = ctypes.c_char_p

    def then_look(owner, name):
        call = getattr(owner, name)

        @functools.wraps(call)
        def called(*arguments, **named):
            result = call(*arguments, **named)
            error = look()
            if error:
                raise RuntimeError(error.decode())
            return result
        setattr(owner, name, called)

    then_look(torch._ops._OpNamespace, "__getattr__")
    then_look(torch.library.Library, "impl")
