"""`ferry calibrate` of the package: runs the program that was built for the torch that is here.

    python -m torch_ferry.calibrate ARGS…     as `ferry calibrate ARGS…`

The program links LibTorch, and with it CUDA's libraries: it finds them in torch's own folder.
"""

import os
import pathlib
import sys

import torch

from . import _built, _versions


def program(package=_versions.PACKAGE):
    """Its path. Raises ImportError where the package has none for this torch."""
    minor = _versions.minor(torch.__version__)
    found = package / "bin" / f"torch-{minor}" / "ferry-calibrate"
    if not found.exists():
        raise ImportError(f"torch_ferry {_built.VERSION} has no ferry-calibrate for torch "
                          f"{torch.__version__} in {found.parent.parent}")
    return found


def main():
    try:
        here = program()
    except ImportError as error:
        sys.exit(f"ferry calibrate: {error}")
    libraries = [str(pathlib.Path(torch.__file__).parent / "lib"),
                 *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    os.execv(here, ["ferry-calibrate", *sys.argv[1:]])


if __name__ == "__main__":
    main()
