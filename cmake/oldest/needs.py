#!/usr/bin/env python3
"""What a program or shared library needs of the system that it runs on.

    needs.py [--may-need 'libtorch*.so']... [--glibc 2.31] [--glibcxx 3.4.28] FILE...

Prints for each file the newest version that it needs of each kind, and fails (1) on a version
newer than floor.FLOOR or the given one, on a shared library that not every system has, and on what
a shared library takes of the system without linking a library that has it: a linker says nothing.
"""

import argparse
import fnmatch
import functools
import os
import re
import subprocess
import sys

import floor

SYSTEM = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
          "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1"]
NEEDED = re.compile(r"^\s+NEEDED\s+(\S+)$", re.M)
REFERENCE = re.compile(r"^\s+0x[0-9a-f]+ 0x[0-9a-f]+ \d+ (\S+)$", re.M)


def needs(path):
    """(libraries, versions)."""
    shown = subprocess.run(["objdump", "-p", path], env={**os.environ, "LC_ALL": "C"},
                           capture_output=True, text=True)
    if shown.returncode:
        sys.exit(f"needs.py: {shown.stderr.strip()}")
    return NEEDED.findall(shown.stdout), set(REFERENCE.findall(shown.stdout))


def names(*options):
    """The dynamic symbols that `nm` tells, each with its version where it has one."""
    shown = subprocess.run(["nm", "--dynamic", "--with-symbol-versions", *options],
                           capture_output=True, text=True)
    return {line.split()[-1] for line in shown.stdout.splitlines() if line.split()[-2] != "w"}


@functools.cache
def ours():
    """What this system's libraries have, under any version."""
    paths = [subprocess.run([os.environ.get("CXX", "g++"), f"-print-file-name={library}"],
                            check=True, capture_output=True, text=True).stdout.strip()
             for library in SYSTEM]
    return {name.split("@")[0] for path in filter(os.path.isabs, paths)
            for name in names("--defined-only", path)}


def unlinked(path):
    """What it takes of the system's libraries, of no version: it linked none that has it."""
    return {name for name in names("--undefined-only", path) if "@" not in name} & ours()


def newest(versions):
    """The newest of each kind."""
    kinds = {}
    for found in filter(None, map(floor.VERSION.fullmatch, versions)):
        kinds[found[1]] = max(kinds.get(found[1], "0"), found[2], key=floor.number)
    return [f"{kind}_{version}" for kind, version in sorted(kinds.items())]


def wrong(needed, versions, allowed, libraries):
    for library in needed:
        if not any(fnmatch.fnmatch(library, one) for one in libraries):
            yield f"needs {library}, which not every system has"
    for version in sorted(versions):
        if floor.newer(version, allowed):
            kind = floor.VERSION.fullmatch(version)[1]
            yield f"needs {version}, newer than {kind}_{allowed[kind]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for kind, version in floor.FLOOR.items():
        parser.add_argument(f"--{kind.lower()}", default=version, dest=kind)
    parser.add_argument("--may-need", action="append", default=[], metavar="LIBRARY")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    allowed = {kind: getattr(options, kind) for kind in floor.FLOOR}
    status = 0
    for path in options.files:
        needed, versions = needs(path)
        print(f"{path}: needs {', '.join(newest(versions) + needed) or 'nothing'}", flush=True)
        late = [f"needs {name}, of no library that it links" for name in sorted(unlinked(path))]
        for line in [*wrong(needed, versions, allowed, SYSTEM + options.may_need), *late]:
            print(f"{path}: {line}", file=sys.stderr, flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
