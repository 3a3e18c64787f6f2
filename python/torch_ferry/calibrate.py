"""Runs `ferry calibrate` in an installed package, with the program built for this torch.

    python -m torch_ferry.calibrate ARGS…     the same as `ferry calibrate ARGS…`

The program is a shared library, so that it uses the LibTorch and the CUDA runtime that torch loads.
"""

import ctypes
import signal
import sys

import torch

from . import _built, _versions


def program(package=_versions.PACKAGE):
    """Loads the library. Raises ImportError if the package has none for this torch, or if this
    torch has no CUDA, because the library needs CUDA's libraries."""
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
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler does not run inside C++
    words = [b"ferry-calibrate", *(word.encode() for word in sys.argv[1:])]
    sys.exit(library.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words)))


if __name__ == "__main__":
    main()
