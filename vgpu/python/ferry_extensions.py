"""An extension's operators under `ferry run` (vgpu/operators/extensions.h): nobody tells when their
kernels are registered, so the library is asked to look for them where Python could be the next to
call one: once it has looked an operator up, or registered a kernel of its own.
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
