"""Finds what a release is built with (release.py): the interpreters, and each version of LibTorch.

Interpreters are looked for in ~/.pyenv and on PATH, and must have Python.h. The versions of torch
are those that python/versions pins. One that is not installed is installed in the user's cache,
which takes the network.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def said_by(python, code):
    """Returns the words that this code prints; None if the interpreter is missing or broken."""
    try:
        ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ran.stdout.split() if ran.returncode == 0 else None


def headers_of(python):
    """Returns ["cpython-311-x86_64-linux-gnu", folder of Python.h]; None if there is no Python.h.
    """
    said = said_by(python, "import sysconfig as s; "
                           "print(s.get_config_var('SOABI'), s.get_paths()['include'])")
    return said if said and pathlib.Path(said[1], "Python.h").exists() else None


class Python:
    """A version of Python that modules are built for. `program` is None if there are only headers,
    which is enough to build a module."""

    def __init__(self, minor, program, soabi, headers):
        self.minor, self.program, self.soabi, self.headers = minor, program, soabi, headers
        self.tag = "cp" + minor.replace(".", "")


def _patch(python):
    """Returns 10 of .pyenv/versions/3.11.10/bin/python3; -1 for a pre-release such as 3.14.0rc1."""
    patch = python.parts[-3].split(".")[2]
    return int(patch) if patch.isdigit() else -1


def pythons():
    """Returns {version: Python} of the interpreters with headers, from pyenv or on PATH."""
    found = {}
    for minor in PYTHONS:
        installed = pathlib.Path.home().glob(f".pyenv/versions/{minor}.*/bin/python3")
        names = [str(path) for path in sorted(installed, key=_patch, reverse=True)]
        for program in [*names, shutil.which(f"python{minor}")]:
            said = program and said_by(program, "import sys; print('%d.%d' % sys.version_info[:2])")
            if said == [minor] and (headers := headers_of(program)):
                found[minor] = Python(minor, program, *headers)
                break
    return found


def from_headers(text):
    """Reads "3.14=FOLDER", for a version of Python that has no interpreter on this machine."""
    minor, _, folder = text.partition("=")
    here = pathlib.Path(folder).resolve()
    said = here / "patchlevel.h"
    version = re.search(r'PY_VERSION\s+"(\d+\.\d+)', said.read_text()) if said.exists() else None
    if minor not in PYTHONS or not version or version[1] != minor:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected VERSION=FOLDER, where FOLDER has the Python.h of this version")
    return Python(minor, None, f"cpython-{minor.replace('.', '')}-x86_64-linux-gnu", str(here))


def torches():
    """Returns the pinned versions of torch, oldest first."""
    names = [path.stem.removeprefix("torch-") for path in ROOT.glob("python/versions/*.lock")]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def cache(name):
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home, "ferry", name)


def site_packages(version):
    """Returns the site-packages of an environment with this torch: that of `./dev`, or one with
    LibTorch only, which is made if it is missing (1.2 GB)."""
    for name in (f"torch-{version}", f"headers-{version}"):
        if (cache(name) / "installed").exists():
            return next(cache(name).glob("lib/python3*/site-packages"))
    folder = cache(f"headers-{version}")
    print(f"release: installing LibTorch {version} in {folder}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    lock = (ROOT / f"python/versions/torch-{version}.lock").read_text(encoding="utf-8")
    alone = re.search(rf"^torch=={re.escape(version)} .*(\n    .*)*", lock, re.M)[0]
    (folder / "torch.lock").write_text(alone + "\n", encoding="utf-8")
    subprocess.run([folder / "bin/pip", "install", "-q", "--no-cache-dir", "--no-deps",
                    "--require-hashes", "-r", folder / "torch.lock"], check=True)
    (folder / "installed").touch()
    return next(folder.glob("lib/python3*/site-packages"))
