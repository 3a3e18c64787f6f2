"""Runs a script on the virtual GPU. `ferry run` starts Python with it, and with the CUDA runtime of
Ferry preloaded: here the operators take their places once PyTorch is imported.

    launch.py SCRIPT ARGS…     with FERRY_VIRTUAL_GPU, which `ferry run` sets (JSON)
"""

import ctypes
import json
import os
import runpy
import sys

RESOURCE_MISSING = 7


def refuse(why):
    print(f"ferry run: {why}", file=sys.stderr)
    sys.exit(RESOURCE_MISSING)


def checked_torch(minor):
    """PyTorch, of the version that the operators were built for."""
    try:
        import torch
    except ImportError as error:
        refuse(f"{sys.executable}: {error}: give --python an interpreter that has PyTorch {minor}")
    if torch.__version__.split(".")[:2] != minor.split("."):
        refuse(f"{sys.executable} has PyTorch {torch.__version__}, and this Ferry was built for "
               f"{minor}")
    if torch.version.cuda is None:
        refuse(f"PyTorch {torch.__version__} was built without CUDA: install a build with CUDA")
    return torch


def no_capture(*_, **__):
    # Before PyTorch's allocator takes part: it would stay in the capture.
    raise RuntimeError("CUDA error: operation not supported: the virtual GPU has no CUDA graphs "
                       "(cudaStreamBeginCapture)")


def start(settings):
    torch = checked_torch(settings["torch"])
    library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libferry_vgpu_python.so"))
    for function in (library.ferry_vgpu_start, library.ferry_vgpu_finish):
        function.restype = ctypes.c_char_p
    library.ferry_vgpu_start.argtypes = [
        ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int, ctypes.c_uint64,
        ctypes.c_char_p]
    error = library.ferry_vgpu_start(
        settings["card"].encode(), settings["device_bytes"], settings["pinned_bytes"],
        settings["tempo"], settings["seed"], os.fsencode(settings["log"]))
    if error:
        refuse(error.decode())
    torch.cuda.CUDAGraph.capture_begin = no_capture
    return library


def main():
    library = start(json.loads(os.environ["FERRY_VIRTUAL_GPU"]))
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        error = library.ferry_vgpu_finish()
        if error:
            print(f"ferry run: {error.decode()}", file=sys.stderr)


main()
