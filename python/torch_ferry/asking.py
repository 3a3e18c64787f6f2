"""Who asks for a tensor's value, and what is said where a capture has none.

A refusal names the place (in the package that asks, and in the script), the operator, and what to
write instead. What may be assumed is advised only where it would help: a number can be taken for 0,
the shape of a selection cannot.
"""

import contextlib
import sys
import traceback
from pathlib import Path

import torch

from .program import CaptureError

_TORCH, _HERE = str(Path(torch.__file__).parent), str(Path(__file__).parent)
SHAPE = "values that tell the shape of what {} makes"
ASKED = {
    **dict.fromkeys(("_local_scalar_dense", "item"), "a tensor's value (item(), or a condition)"),
    "equal": "whether two tensors are equal", "allclose": "whether two tensors are close",
    "tolist": "a tensor's values (tolist())",
    **dict.fromkeys(("numpy", "__array__"), "a tensor's values (numpy())"),
    "__dlpack__": "a tensor's values (DLPack)",
    "nonzero": SHAPE.format("nonzero") + " (a mask as an index calls it)",
    "_unique2": SHAPE.format("unique"),
}
NUMBERS = ("_local_scalar_dense", "item", "equal", "allclose")  # what --assume zeros answers
KNOWN = ("Known is what follows from Python's numbers and from real tensors, but for parameters, "
         "inputs of floating point and random numbers: give lengths, masks and repeats as lists, "
         "or as tensors of integers or booleans")
PICKED = "Capture with --assume balanced where an expert or a class is picked"


class ValueAsked(CaptureError):
    """The step asks for a value that a capture does not have."""


def refused(name, line=None):
    """What is to be raised where the operator, or the method, of this name asks for a value.
    `line`: where the script is to blame, if that is not where it is now."""
    asked = ASKED.get(name) or SHAPE.format(name.strip("_"))
    zeros = ", with --assume zeros where it does not matter" if name in NUMBERS else ""
    return ValueAsked(f"{line or asking_line()} asks for {asked}, and a capture has none. {KNOWN}. "
                      f"{PICKED}{zeros}; or leave it out of the step")


def asking_line():
    """FILE:LINE of whoever called PyTorch, and of the script, where a package did for it."""
    return _told((f.f_code.co_filename, f.f_lineno) for f, _ in
                 traceback.walk_stack(sys._getframe()))


def where_raised(error):
    """The same of an exception."""
    return _told((f.f_code.co_filename, line) for f, line in
                 reversed([*traceback.walk_tb(error.__traceback__)]))


@contextlib.contextmanager
def telling_triton():
    """A Triton kernel that is launched ends in errors of the driver's; a CaptureError says what it
    is."""
    try:
        yield
    except CaptureError:
        raise
    except Exception as error:
        if not any("/triton/" in f.f_code.co_filename
                   for f, _ in traceback.walk_tb(error.__traceback__)):
            raise
        raise CaptureError(
            f"{where_raised(error)} launches a Triton kernel, and a capture sees PyTorch's own "
            "operators alone. TRL's SFTTrainer and Liger compute their loss so on CUDA: capture "
            "with --device cpu for an estimate, without that loss, or offload without a plan"
        ) from error


def _told(places):
    """`places`: (file, line) from the innermost frame outward."""
    places = [place for place in places
              if not place[0].startswith((_TORCH, _HERE, "<")) and "/triton/" not in place[0]]
    own = [place for place in places if not _is_packaged(place[0])]
    told = places[:1] + [place for place in own[:1] if place != places[0]]
    return ", called from ".join(f"{file}:{line}" for file, line in told) or "the step"


def _is_packaged(name):
    return "site-packages" in name or name.startswith(sys.base_prefix + "/lib")
