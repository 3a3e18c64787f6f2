"""`ferry calibrate` of the package: calls the program that was built for the torch that is here.

    python -m torch_ferry.calibrate ARGS…     as `ferry calibrate ARGS…`

It is a library, which finds LibTorch and CUDA's runtime as torch has loaded them.
"""

import ctypes
import signal
import sys

import torch

from . import _built, _versions


def program(package=_versions.PACKAGE):
    """The library. Raises ImportError where the package has none for this torch, and where this
    torch has no CUDA, whose libraries it needs."""
    found = package / f"torch-{_versions.minor(torch.__version__)}" / "_calibrate.so"
    here = f"torch_ferry {_built.VERSION} cannot calibrate with torch {torch.__version__}"
    if not found.exists():
        raise ImportError(f"{here}: there is no {found}")
    if torch.version.cuda is None:
        raise ImportError(f"{here}: expected a build of torch with CUDA")
    return ctypes.CDLL(str(found))


def main():
    try:
        library = program()
    except (ImportError, OSError) as error:
        print(f"ferry calibrate: {error}", file=sys.stderr)
        sys.exit(7)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nobody asks Python's while it runs
    words = [b"ferry-calibrate", *(word.encode() for word in sys.argv[1:])]
    sys.exit(library.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words)))


if __name__ == "__main__":
    main()
