"""Puts what a GPU machine needs into one folder: programs, data, scripts.

    pack.py BUILD FOLDER

BUILD is a portable release build. The programs are stripped and lose the paths of this machine;
what they ask of the C library is checked against the oldest one that the bundle is meant for, and
the folder's size against what travels. Written whole or not at all.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

MOST_BYTES = 48 << 20
# Of Debian 12, on which it is built; Ubuntu 24.04 has newer ones. The C++ library is the process's,
# which is LibTorch's: with one of its own a program would free the other's memory.
OLDEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
PROGRAMS = ("ferry", "ferry-train", "ferry-calibrate", "tests/real/gpu/ferry_gpu_tests",
            "bench/hooks_bench", "bench/torch_checkpoint_bench", "bench/recompute_bench")
# For `run --virtual` alone, apart from the others: one of them has the driver's name.
VIRTUAL = ("tests/real/virtual_gpu/libferry_virtual_gpu.so", "vgpu/libcuda.so.1",
           "vgpu/libnvidia-ml.so.1")
SHARED = {"libbenchmark.so.1debian"}  # Debian has it as a shared library alone
SCRIPTS = ("archive.py", "decisions.py", "machine.py", "parts.py", "runner.py", "summary.py")


class Refused(Exception):
    """The bundle would not run where it is meant to."""


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def newest(library, symbols):
    """The newest version of the library that `objdump -T`'s lines ask for."""
    found = re.findall(rf"\b{library}_(\d+(?:\.\d+)+)", symbols)
    return max((tuple(map(int, version.split("."))) for version in found), default=(0,))


def text(version):
    return ".".join(map(str, version))


def check_versions(name, symbols):
    for library, oldest in OLDEST.items():
        asked = newest(library, symbols)
        if asked > oldest:
            raise Refused(f"{name} asks for {library}_{text(asked)}; expected at most "
                          f"{library}_{text(oldest)}")
    return newest("GLIBC", symbols)


def check_needed(name, dynamic):
    """Of shared libraries a program may need the C library's and LibTorch's."""
    allowed = re.compile(
        r"lib(c|m|dl|rt|pthread|torch\w*|c10\w*|cudart|gcc_s|stdc\+\+)\.so|ld-linux")
    for library in re.findall(r"NEEDED\s+(\S+)", dynamic):
        if library not in SHARED and not allowed.match(library):
            raise Refused(f"{name} needs {library}, which a GPU machine may not have")


def place(source, folder, check=check_needed):
    """A program or library, stripped, without a run path, checked."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / source.name
    shutil.copy2(source, target)
    run("strip", "--strip-unneeded", target)
    script = folder / "rpath.cmake"
    script.write_text(f'file(RPATH_REMOVE FILE "{target}")\n')
    run("cmake", "-P", script)
    script.unlink()
    check(target.name, run("objdump", "-p", target))
    return check_versions(target.name, run("objdump", "-T", target))


def place_programs(build, folder):
    glibc = (0,)
    for name in PROGRAMS:
        glibc = max(glibc, place(build / name, folder / "bin"))
    for name in VIRTUAL:
        glibc = max(glibc, place(build / name, folder / "virtual", check=lambda *_: None))
    for name in SHARED:
        listed = run("ldd", build / "bench/hooks_bench")
        found = re.search(rf"{re.escape(name)} => (\S+)", listed)
        glibc = max(glibc, place(pathlib.Path(found[1]), folder / "lib"))
    return glibc


def place_data(root, folder):
    scripts = folder / "scripts"
    scripts.mkdir()
    here = root / "tests/real/gpu/bundle"
    shutil.copy2(here / "run", folder / "run")
    for name in SCRIPTS:
        shutil.copy2(here / name, scripts / name)
    for script in sorted((root / "bench/real").glob("*.py")):
        shutil.copy2(script, scripts / script.name)
    shutil.copytree(root / "scenarios", folder / "share/ferry/scenarios",
                    ignore=shutil.ignore_patterns("*.h", "*.cpp"))
    shutil.copytree(root / "real/train/text", folder / "share/ferry/text")
    shutil.copy2(root / "LICENSE", folder / "LICENSE")


def place_trl(lock, folder):
    """TRL's activation offloading, from the wheel that is pinned; the bundle does without
    where that cannot be had."""
    pinned = re.search(r"^trl==(\S+) .*(\n    .*)*", lock.read_text(encoding="utf-8"), re.M)
    wheel = folder / "trl-wheel"
    wheel.mkdir()
    try:
        (wheel / "trl.lock").write_text(pinned[0] + "\n", encoding="utf-8")
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes",
            "--dest", wheel, "-r", wheel / "trl.lock")
        run(sys.executable, "-m", "zipfile", "-e", next(wheel.glob("*.whl")), wheel / "all")
        target = folder / "trl"
        target.mkdir()
        shutil.copy2(wheel / "all/trl/models/activation_offloading.py", target)
        for licence in (wheel / "all").glob("trl-*.dist-info/licenses/LICENSE"):
            shutil.copy2(licence, target)
        return pinned[1]
    except subprocess.CalledProcessError as error:
        print(f"pack: without TRL: {error.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    finally:
        shutil.rmtree(wheel, ignore_errors=True)


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def commit(root):
    try:
        return run("git", "-C", root, "describe", "--always", "--dirty").strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def pack(root, build, folder):
    cache = (build / "CMakeCache.txt").read_text()
    version = re.search(r"VERSION (\d+\.\d+\.\d+)", (root / "CMakeLists.txt").read_text())[1]
    folder_of_torch = re.search(r"^FERRY_TORCH:\w+=(.+)$", cache, re.MULTILINE)[1]
    torch = re.search(r"__version__ = '([\d.]+)",
                      (pathlib.Path(folder_of_torch) / "version.py").read_text())[1]
    if "FERRY_PORTABLE:BOOL=ON" not in cache:
        raise Refused(f"{build} is no portable build (FERRY_PORTABLE)")
    glibc = place_programs(build, folder)
    place_data(root, folder)
    facts = {"version": version, "commit": commit(root), "torch": torch,
             "glibc": text(glibc),
             "trl": place_trl(root / "python/without_dependencies.lock", folder)}
    (folder / "bundle.json").write_text(json.dumps(facts, indent=1) + "\n")
    if size(folder) > MOST_BYTES:
        raise Refused(f"{size(folder) / 2**20:.1f} MiB; expected at most {MOST_BYTES >> 20}")
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    given = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[4]
    made = given.folder.with_name(given.folder.name + ".new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    try:
        facts = pack(root, given.build, made)
    except Refused as refused:
        print(f"pack: {refused}", file=sys.stderr)
        shutil.rmtree(made)
        return 1
    shutil.rmtree(given.folder, ignore_errors=True)
    made.replace(given.folder)
    print(f"{given.folder}: {size(given.folder) / 2**20:.1f} MiB, for torch {facts['torch']} and "
          f"glibc {facts['glibc']} or newer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
