"""Loads the CUDA part of the compiled module, if this torch was built with CUDA.

It is a separate shared library, because it needs the CUDA libraries of LibTorch. It registers
itself when it is loaded. Loading makes no CUDA call, so the process may still fork and choose its
devices.
"""

import ctypes
import pathlib

import torch

from . import _C


def load():
    """Loads the CUDA library. Returns False if this build of torch or of Ferry has no CUDA."""
    library = pathlib.Path(_C.__file__).with_name("_C_cuda.so")
    if torch.version.cuda is None or not library.exists():
        return False
    ctypes.CDLL(str(library))
    return True
