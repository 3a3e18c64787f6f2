"""Which build of the module fits the torch and the Python that are here.

The package holds one for each minor version of both: a folder `torch-2.11` for each torch, and in
it a module for each Python. The module is a subclass of LibTorch's autograd engine: in another
version's process wrong functions would be called, without a word. So this is asked before any of it
is loaded. Standard library only, but for torch itself.
"""

import importlib.machinery
import importlib.util
import pathlib
import re
import sys

MODULE = "_C"
PACKAGE = pathlib.Path(__file__).parent


def minor(version):
    """ "2.11" of "2.11.0+cu130" and of "2.11.0a0+git1234"."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version


def _sorted(versions):
    return sorted(set(versions), key=lambda version: [int(part) for part in version.split(".")])


def _text(versions):
    """ "2.10, 2.11 or 2.12"."""
    return " or ".join(filter(None, [", ".join(versions[:-1]), *versions[-1:]]))


def torches(package):
    """The versions of torch that the package in this folder was built for, in order."""
    return _sorted(folder.name.removeprefix("torch-") for folder in package.glob("torch-*")
                   if any(folder.glob(f"{MODULE}.*")))


def _pythons(folder):
    """Those that the modules in it were built for, by their names."""
    tags = (re.match(rf"{MODULE}\.cpython-(\d)(\d+)", file.name)
            for file in folder.glob(f"{MODULE}.*"))
    return _sorted(f"{tag[1]}.{tag[2]}" for tag in tags if tag)


def needs_torch(package, version):
    """What to say where there is no torch at all; None where there is one."""
    if importlib.util.find_spec("torch") is not None:
        return None
    return (f"torch_ferry {version} needs torch {_text(torches(package))}, and there is none here. "
            "Install one: pip install torch")


def folder_for_torch(package, version):
    """Imports torch, and returns the folder of what was built for it. Raises ImportError where
    there is none for what is here."""
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
                          f"Install one of these (pip install 'torch=={built[-1]}.*'), a Ferry for "
                          "this torch, or build Ferry's sources beside it: "
                          "pip install --no-build-isolation .")
    folder = package / f"torch-{here}"
    if not any((folder / (MODULE + end)).exists()
               for end in importlib.machinery.EXTENSION_SUFFIXES):
        raise ImportError(f"{ours} and Python {_text(_pythons(folder))}; this is Python "
                          f"{minor(sys.version)}. Install it with this Python's pip")
    return folder

