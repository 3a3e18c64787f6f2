"""Makes what a release has: wheels, sources, a tarball of the command, checksums, a list of parts.

    release.py WORK --cuda-headers FOLDER [--torch V …] [--python V …]     `./dev release` calls it

What depends on a version of torch is compiled once for each, and of that what depends on a version
of Python once for each of those; the command once.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import found
import sbom

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLATFORM = "manylinux_2_28_x86_64"
# Estimates for two cores, from a release of one torch and two Pythons.
MINUTES_ONCE, MINUTES_A_TORCH, MINUTES_A_MODULE = 6, 6, 1
# A commit's time in each file that is packed: the same commit, the same bytes.
EPOCH = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, text=True,
                       capture_output=True).stdout.strip()


def run(*command, **options):
    """What it prints is shown where it fails."""
    words = [str(word) for word in command]
    print("release:", shlex.join(words)[:90], "…", file=sys.stderr, flush=True)
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False, **options)
    if ran.returncode:
        sys.exit(f"{ran.stdout[-20000:]}\nrelease: that ended with {ran.returncode}")


def version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^  VERSION (\S+)", text, re.M)[1]


def without_paths(*folders):
    """Files are named in messages as they are in these folders, wherever they are."""
    return " ".join(f"-ffile-prefix-map={folder}/=" for folder in folders)


class Builds:
    """The builds, one for each version of torch; what they install comes together in one folder."""

    def __init__(self, out, pythons, site_packages, cuda_headers):
        self.out, self.pythons = out, pythons
        self.site_packages = site_packages  # by version of torch
        self.cuda_headers = cuda_headers.resolve()
        self.stage = out / "stage"

    def make(self, torch, with_command):
        """`with_command`: and what does not depend on torch."""
        folder = self.out / f"torch-{torch}"
        first, *others = self.pythons
        run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/oldest_glibc.cmake",
            "-DFERRY_PYTHON_ONLY=ON", "-DFERRY_COMMAND=ON",
            f"-DCMAKE_CXX_FLAGS={without_paths(ROOT, self.site_packages[torch])}",
            f"-DFERRY_TORCH={self.site_packages[torch]}/torch",
            f"-DFERRY_CUDA_HEADERS={self.cuda_headers}",
            f"-DPython_EXECUTABLE={first.program}", f"-DPython_INCLUDE_DIR={first.headers}",
            "-DFERRY_PYTHONS=" + ";".join(f"{other.soabi}={other.headers}" for other in others))
        target = "ferry_package" if with_command else "ferry_package_for_torch"
        run("cmake", "--build", folder, "--target", target)
        component = [] if with_command else ["--component", "torch"]
        run("cmake", "--install", folder, "--prefix", self.stage, "--strip", *component)


def wheel(stage, work, python, pythons, out):
    """Of the sources, and of what was built that which is for this Python; its tag says so."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "python", work / "python")
    for name in ("pyproject.toml", "CMakeLists.txt", "LICENSE"):
        shutil.copy(ROOT / name, work)
    others = [f"_C.{other.soabi}.so" for other in pythons if other != python]
    shutil.copytree(stage / "torch_ferry", work / "python/torch_ferry", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns(*others))
    environment = dict(os.environ, SOURCE_DATE_EPOCH=EPOCH)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps",
        "--no-cache-dir", "-w", work / "made", "-C", "wheel.cmake=false", work, env=environment)
    made, = (work / "made").glob("*.whl")
    run(sys.executable, "-m", "wheel", "tags", "--remove", "--python-tag", python.tag, "--abi-tag",
        python.tag, "--platform-tag", PLATFORM, made, env=environment)
    made, = (work / "made").glob("*.whl")
    shutil.move(made, out / made.name)


def check_needs(stage):
    """That the binaries run where the tag says, beside any LibTorch (cmake/oldest/needs.py)."""
    loaded = ("libtorch*", "libc10*", "libcuda.so.1", "libnvidia-ml.so.1",
              "libferry_vgpu_runtime.so", "torch_ferry._C")
    binaries = [path for path in (stage / "torch_ferry").rglob("*")
                if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    run(sys.executable, ROOT / "cmake/oldest/needs.py",
        *(word for name in loaded for word in ("--may-need", name)), *binaries)


def tarball(stage, work, out):
    """The command for machines without Python."""
    name = f"ferry-{version()}-linux-x86_64"
    folder = work / name
    shutil.rmtree(work, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    for program in ("ferry", "ferry-verify"):
        shutil.copy(stage / "torch_ferry/bin" / program, folder / "bin")
    shutil.copytree(stage / "torch_ferry/share", folder / "share")
    for text in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / text, folder)
    run("tar", "-C", work, "--sort=name", f"--mtime=@{EPOCH}", "--owner=0", "--group=0",
        "--numeric-owner", "--mode=go=rX,u+rw", "-I", "gzip -n9",
        "-cf", out / f"{name}.tar.gz", name)


def checksums(out):
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
             for file in sorted(out.iterdir()) if file.name != "SHA256SUMS"]
    (out / "SHA256SUMS").write_text("".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=pathlib.Path,
                        help="builds go here, and what is made to its folder dist")
    parser.add_argument("--cuda-headers", type=pathlib.Path, required=True, help="CUDA 13's")
    parser.add_argument("--torch", metavar="V", action="append", choices=found.torches(),
                        help="for these alone")
    parser.add_argument("--python", metavar="V", action="append", choices=found.PYTHONS,
                        help="for these alone")
    parser.add_argument("--headers", metavar="V=FOLDER", action="append", default=[],
                        type=found.from_headers,
                        help="of a Python that has no interpreter here: where its Python.h is")
    options = parser.parse_args()
    work = options.work.resolve()
    torches = sorted(options.torch or found.torches(), key=found.torches().index)
    here = found.pythons()
    for python in options.headers:
        here.setdefault(python.minor, python)
    if missing := [each for each in options.python or found.PYTHONS if each not in here]:
        print(f"release: no Python {', '.join(missing)} with headers here", file=sys.stderr)
    pythons = [python for minor, python in here.items() if minor in (options.python or here)]
    if not pythons or not pythons[0].program:
        print("release: expected a Python that has its headers and runs here: CMake asks it",
              file=sys.stderr)
        sys.exit(7)
    minutes = MINUTES_ONCE + len(torches) * (MINUTES_A_TORCH + MINUTES_A_MODULE * len(pythons))
    print(f"release: about {minutes:.0f} minutes on two cores: {len(torches)} versions of torch, "
          f"{len(pythons)} of Python", file=sys.stderr)
    sites = {torch: found.site_packages(torch) for torch in torches}
    builds = Builds(work, pythons, sites, options.cuda_headers)
    out = work / "dist"
    for folder in (out, builds.stage):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    *older, newest = torches
    for torch in (newest, *older):
        builds.make(torch, with_command=torch == newest)
    check_needs(builds.stage)
    for python in pythons:
        wheel(builds.stage, work / "wheel", python, pythons, out)
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", out, ROOT,
        env=dict(os.environ, SOURCE_DATE_EPOCH=EPOCH))
    run(sys.executable, "-m", "twine", "check", "--strict", *out.iterdir())
    tarball(builds.stage, work / "tarball", out)
    sbom.write(out / f"ferry-{version()}.cdx.json", version(), EPOCH)
    checksums(out)


if __name__ == "__main__":
    main()
