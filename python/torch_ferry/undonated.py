"""Keeps compiled functions from writing what they saved, in a process that offloads.

The backward of a compiled function writes its results into the memory of what its forward saved, if
nothing else is to use that (PyTorch calls these donated buffers). A tensor that an offloader still
copies to the host is in use. So functions are compiled without, from the first guard on that opens
after torch.compile was called. A function that was compiled before that stays as it is.
"""

import sys

_done = False


def compile_undonated():
    global _done
    functorch, inductor = (sys.modules.get(f"torch.{name}.config")
                           for name in ("_functorch", "_inductor"))
    if _done or functorch is None or inductor is None:  # torch.compile imports both
        return
    _done = True
    functorch.donated_buffer = False
    # Inductor's cache of compiled backwards does not know that setting. It knows this one, which
    # changes only names of kernels.
    inductor.kernel_name_max_ops += 1
