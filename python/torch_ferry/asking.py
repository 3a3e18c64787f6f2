"""The errors of a capture whose step asks for a value that a fake tensor does not have.

An error names the place (in the package that asks, and in the script), the operator, and what to
write instead. It suggests an assumption (`--assume`) only if that would help: a number can be
assumed to be 0, but the shape of a selection cannot be assumed.
"""

import contextlib
import sys
import traceback
from pathlib import Path

import torch

from .program import CaptureError

_TORCH, _HERE = str(Path(torch.__file__).parent), str(Path(__file__).parent)
SHAPE = "values that determine the shape of the result of {}"
ASKED = {
    **dict.fromkeys(("_local_scalar_dense", "item"), "a tensor's value (item(), or a condition)"),
    "equal": "whether two tensors are equal", "allclose": "whether two tensors are close",
    "tolist": "a tensor's values (tolist())",
    **dict.fromkeys(("numpy", "__array__"), "a tensor's values (numpy())"),
    "__dlpack__": "a tensor's values (DLPack)",
    "nonzero": SHAPE.format("nonzero") + " (indexing with a mask calls it)",
    "_unique2": SHAPE.format("unique"),
}
NUMBERS = ("_local_scalar_dense", "item", "equal", "allclose")  # --assume zeros answers these
KNOWN = ("It knows values that follow from Python's numbers and from real tensors, except "
         "parameters, floating-point inputs and random numbers: give lengths, masks and repeats as "
         "lists, or as tensors of integers or booleans")
PICKED = "Capture with --assume balanced if the value picks an expert or a class"


class ValueAsked(CaptureError):
    """The step asks for a value that a capture does not have."""


def refused(name, line=None):
    """Returns the error for the operator or method `name`, which asks for a value.

    `line` is the place in the script; by default the place that runs now."""
    asked = ASKED.get(name) or SHAPE.format(name.strip("_"))
    zeros = ", or with --assume zeros if the value does not matter" if name in NUMBERS else ""
    return ValueAsked(f"{line or asking_line()} asks for {asked}, which the capture does not know. "
                      f"{KNOWN}. {PICKED}{zeros}; or move this line out of the step")


def asking_line():
    """Returns FILE:LINE of the caller of PyTorch. If that is in a package, adds the script's line.
    """
    return _told((f.f_code.co_filename, f.f_lineno) for f, _ in
                 traceback.walk_stack(sys._getframe()))


def where_raised(error):
    """Returns the same for the place where an exception was raised."""
    return _told((f.f_code.co_filename, line) for f, line in
                 reversed([*traceback.walk_tb(error.__traceback__)]))


@contextlib.contextmanager
def telling_triton():
    """A context that replaces the driver errors of a launched Triton kernel by a CaptureError."""
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
            "operators only. TRL's SFTTrainer and Liger compute their loss in Triton on CUDA: "
            "capture with --device cpu for an estimate without this loss, or offload without a plan"
        ) from error


def _told(places):
    """Returns the text for an error. `places` are (file, line), from the innermost frame outward.
    """
    places = [place for place in places
              if not place[0].startswith((_TORCH, _HERE, "<")) and "/triton/" not in place[0]]
    own = [place for place in places if not _is_packaged(place[0])]
    told = places[:1] + [place for place in own[:1] if place != places[0]]
    return ", called from ".join(f"{file}:{line}" for file, line in told) or "the step"


def _is_packaged(name):
    return "site-packages" in name or name.startswith(sys.base_prefix + "/lib")
