"""Finds the build of the compiled module that fits this torch and this Python.

The package has a folder for each minor version of torch, such as `torch-2.11`, and in it a module
for each version of Python. The module derives from LibTorch's autograd engine. Loaded beside
another version of torch it would call wrong functions without an error, so the version is checked
before the module is loaded. Imports the standard library and torch only.
"""

import importlib.machinery
import importlib.util
import pathlib
import re
import sys

MODULE = "_C"
PACKAGE = pathlib.Path(__file__).parent


def minor(version):
    """Returns "2.11" for "2.11.0+cu130" and for "2.11.0a0+git1234"."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version


def _sorted(versions):
    return sorted(set(versions), key=lambda version: [int(part) for part in version.split(".")])


def _text(versions):
    """Returns the versions as text: "2.10, 2.11 or 2.12"."""
    return " or ".join(filter(None, [", ".join(versions[:-1]), *versions[-1:]]))


def torches(package):
    """Returns the versions of torch that the package in this folder was built for, in order."""
    return _sorted(folder.name.removeprefix("torch-") for folder in package.glob("torch-*")
                   if any(folder.glob(f"{MODULE}.*")))


def _pythons(folder):
    """Returns the versions of Python of the modules in this folder, read from the file names."""
    tags = (re.match(rf"{MODULE}\.cpython-(\d)(\d+)", file.name)
            for file in folder.glob(f"{MODULE}.*"))
    return _sorted(f"{tag[1]}.{tag[2]}" for tag in tags if tag)


def needs_torch(package, version):
    """Returns the error message if torch is not installed, and None if it is."""
    if importlib.util.find_spec("torch") is not None:
        return None
    return (f"torch_ferry {version} needs torch {_text(torches(package))}, and torch is not "
            "installed. Install it: pip install torch")


def folder_for_torch(package, version):
    """Imports torch and returns the folder of the modules that were built for it.

    Raises ImportError if torch cannot be imported, or if there is no module for this torch and
    this Python."""
    built = torches(package)
    ours = f"torch_ferry {version} was built for torch {_text(built)}"
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"{ours}; torch cannot be imported ({error}). Install it again: "
                          f"pip install --force-reinstall 'torch=={built[-1]}.*'") from error
    here = minor(torch.__version__)
    if here not in built:
        raise ImportError(f"{ours}; this is torch {torch.__version__}. "
                          f"Install one of these (pip install 'torch=={built[-1]}.*') or a Ferry "
                          "for this torch, or build Ferry from source with this torch: "
                          "pip install --no-build-isolation .")
    folder = package / f"torch-{here}"
    if not any((folder / (MODULE + end)).exists()
               for end in importlib.machinery.EXTENSION_SUFFIXES):
        raise ImportError(f"{ours} and Python {_text(_pythons(folder))}; this is Python "
                          f"{minor(sys.version)}. Install torch_ferry with the pip of this Python")
    return folder

