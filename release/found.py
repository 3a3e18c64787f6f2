"""What a release is built with, as it is found here: interpreters, and each version of LibTorch."""

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
    """What it prints; None where there is none, or no whole one."""
    try:
        ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ran.stdout.split() if ran.returncode == 0 else None


def headers_of(python):
    """ "cpython-311-x86_64-linux-gnu" and where Python.h is; None where it is not."""
    said = said_by(python, "import sysconfig as s; "
                           "print(s.get_config_var('SOABI'), s.get_paths()['include'])")
    return said if said and pathlib.Path(said[1], "Python.h").exists() else None


class Python:
    """A version of Python that modules are built for. `program` is None where there are headers
    alone: enough to build for it."""

    def __init__(self, minor, program, soabi, headers):
        self.minor, self.program, self.soabi, self.headers = minor, program, soabi, headers
        self.tag = "cp" + minor.replace(".", "")


def pythons():
    """By version: an interpreter with headers, of pyenv's or on the path."""
    found = {}
    for minor in PYTHONS:
        names = [str(path) for path in sorted(
            pathlib.Path.home().glob(f".pyenv/versions/{minor}.*/bin/python3"), reverse=True)]
        for program in [*names, shutil.which(f"python{minor}")]:
            said = program and said_by(program, "import sys; print('%d.%d' % sys.version_info[:2])")
            if said == [minor] and (headers := headers_of(program)):
                found[minor] = Python(minor, program, *headers)
                break
    return found


def from_headers(text):
    """ "3.14=FOLDER": a version of which there is no interpreter here."""
    minor, _, folder = text.partition("=")
    here = pathlib.Path(folder).resolve()
    said = here / "patchlevel.h"
    version = re.search(r'PY_VERSION\s+"(\d+\.\d+)', said.read_text()) if said.exists() else None
    if minor not in PYTHONS or not version or version[1] != minor:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a version of Python, =, and the folder of its Python.h")
    return Python(minor, None, f"cpython-{minor.replace('.', '')}-x86_64-linux-gnu", str(here))


def torches():
    """The versions that are pinned, oldest first."""
    names = [path.stem.removeprefix("torch-") for path in ROOT.glob("python/versions/*.lock")]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def cache(name):
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home, "ferry", name)


def site_packages(version):
    """Of an environment that has this torch: `./dev`'s, or one with LibTorch alone, which is made
    where it is missing (1.2 GB)."""
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
