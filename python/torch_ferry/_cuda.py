"""CUDA for the module, where the torch that is here has it.

It is an object of its own, which needs LibTorch's CUDA libraries and registers itself as it is
loaded. No CUDA call is made by that: a process may still fork, and choose its devices.
"""

import ctypes
import pathlib

import torch

from . import _C


def load():
    """Whether CUDA's tensors can be offloaded, as far as this build goes."""
    library = pathlib.Path(_C.__file__).with_name("_C_cuda.so")
    if torch.version.cuda is None or not library.exists():
        return False
    ctypes.CDLL(str(library))
    return True
