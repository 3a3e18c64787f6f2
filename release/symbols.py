"""Checks that libraries find in PyTorch what they use of it.

A library is loaded by another process than the one that links it, so a name that a version of torch
declares and does not define is found out by the user. PyTorch 2.12 has such a function.
"""

import subprocess

# Names of PyTorch's namespaces, as GCC writes them: at, c10, torch, and their members.
_THEIRS = tuple(f"_ZN{const}{name}" for const in ("", "K") for name in ("2at", "3c10", "5torch"))


def missing(library, torch_folder):
    """Returns the names of PyTorch that the library uses and that PyTorch's libraries lack, as they
    are in C++.

    torch_folder  the folder of the package torch"""
    used = {name for name in _names(library, "--undefined-only") if name.startswith(_THEIRS)}
    for theirs in sorted((torch_folder / "lib").glob("*.so*")):
        if not used:
            break
        used -= _names(theirs, "--defined-only")
    return sorted(_said("c++filt", *used).splitlines()) if used else []


def _names(library, which):
    lines = _said("nm", "--dynamic", which, library).splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines if line.strip()}


def _said(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout
