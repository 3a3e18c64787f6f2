"""The small objects of C++ that a capture loads, each from one folder in `real`.

They stand beside this file where the package was built. In a source tree where nothing was built a
compiler makes them, in two seconds each, and they go with the process: a capture needs no build.
"""

import ctypes
import functools
import os
import pathlib
import subprocess
import sys
import tempfile

from . import _versions

SOURCES = pathlib.Path(__file__).resolve().parents[2]


class Unavailable(Exception):
    """An object cannot be had here, or what it is for; the message says why."""


@functools.cache
def load(name, sources, options, otherwise):
    """The object `name`. It is made of `sources`, which are named from the root of the source tree,
    with the compiler's `options`; `otherwise`: what a user may do who has neither."""
    folders = [pathlib.Path(__file__).parent]
    if built := os.environ.get("FERRY_PYTHON_PACKAGE"):
        folders.append(pathlib.Path(built, "torch_ferry"))
    if torch := sys.modules.get("torch"):  # of what needs it there is one for each version
        version = _versions.minor(torch.__version__)
        folders += [folder / f"torch-{version}" for folder in folders]
    found = next((folder / name for folder in folders if (folder / name).exists()), None)
    return ctypes.CDLL(str(found)) if found else _compiled(name, sources, options, otherwise)


def _compiled(name, sources, options, otherwise):
    paths = [SOURCES / source for source in sources]
    if not all(path.exists() for path in paths):
        raise Unavailable(f"there is no {name} in this torch_ferry{otherwise}")
    with tempfile.TemporaryDirectory(prefix="torch_ferry.") as folder:
        made = pathlib.Path(folder, name)
        command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-fPIC", "-shared", *paths,
                   "-o", made, "-I", SOURCES, *options]
        try:
            subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stdout", None) or b""
            raise Unavailable(f"{name} was not built, and {paths[-1]} does not compile: {error}\n"
                              f"{said.decode(errors='replace')}") from error
        return ctypes.CDLL(str(made))
