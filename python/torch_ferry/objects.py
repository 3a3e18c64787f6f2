"""Loads the small C++ libraries that a capture needs, each from one folder in `real`.

In a built package they are beside this file. In a source tree without a build, a C++ compiler makes
them at the first use, in two seconds each and in a temporary folder, so a capture needs no build.
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
    """A library, or the feature that needs it, is not available here; the message says why."""


@functools.cache
def load(name, sources, options, otherwise):
    """Loads the library `name`. If it was not built, it is compiled from `sources` (paths in the
    source tree) with the compiler `options`. Raises Unavailable if there are no sources either;
    the message ends with `otherwise`, which says what to do then."""
    folders = [pathlib.Path(__file__).parent]
    if built := os.environ.get("FERRY_PYTHON_PACKAGE"):
        folders.append(pathlib.Path(built, "torch_ferry"))
    if torch := sys.modules.get("torch"):  # libraries that need torch exist for each version
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
