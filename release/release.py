"""Makes a release: wheels, sources, a tarball of the command, checksums, a list of parts.

    release.py WORK --cuda-headers FOLDER [--torch V …] [--python V …]     `./dev release` calls it

Code that depends on torch is compiled once for each version of torch, code that also depends on
Python once for each version of both, and the command once.

It replaces WORK/dist and WORK/stage. The packed files have the time of the commit, so the same
commit gives the same times. It makes files for Linux on x86-64 only. It does not upload anything
and does not try the wheels (fresh.py does). A Python without headers is left out, with a message.
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
import symbols

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLATFORM = "manylinux_2_28_x86_64"
# Estimates in minutes on two cores, from a release with one torch and two Pythons.
MINUTES_ONCE, MINUTES_A_TORCH, MINUTES_A_MODULE = 6, 6, 1
# All packed files get the time of the commit, so the same commit gives the same times.
EPOCH = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, text=True,
                       capture_output=True).stdout.strip()


def run(*command, **options):
    """Runs a command. If it fails, shows its output and exits."""
    words = [str(word) for word in command]
    print("release:", shlex.join(words)[:90], "…", file=sys.stderr, flush=True)
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False, **options)
    if ran.returncode:
        sys.exit(f"{ran.stdout[-20000:]}\nrelease: this command failed with exit code "
                 f"{ran.returncode}")


def version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^  VERSION (\S+)", text, re.M)[1]


def without_paths(*folders):
    """Returns the compiler option that makes the paths of files in messages relative to these
    folders."""
    return " ".join(f"-ffile-prefix-map={folder}/=" for folder in folders)


class Builds:
    """The builds, one for each version of torch. All install into one folder, `stage`."""

    def __init__(self, out, pythons, site_packages, cuda_headers):
        self.out, self.pythons = out, pythons
        self.site_packages = site_packages  # version of torch → its folder
        self.cuda_headers = cuda_headers.resolve()
        self.stage = out / "stage"

    def make(self, torch, with_command):
        """Builds and installs for one version of torch. With `with_command` also the command and
        all else that does not depend on torch."""
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
    """Makes the wheel for one Python: the sources, and what was built for this Python. The
    wheel's tag names that Python."""
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
    """Checks that the binaries run on all systems of the wheel's tag (cmake/oldest/needs.py)."""
    loaded = ("libtorch*", "libc10*", "libcuda.so.1", "libnvidia-ml.so.1",
              "libferry_vgpu_runtime.so", "torch_ferry._C")
    binaries = [path for path in (stage / "torch_ferry").rglob("*")
                if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    run(sys.executable, ROOT / "cmake/oldest/needs.py",
        *(word for name in loaded for word in ("--may-need", name)), *binaries)


def check_symbols(stage, site_packages):
    """Checks that the libraries for each torch find in it what they use (symbols.py)."""
    for torch, site in site_packages.items():
        minor = ".".join(torch.split(".")[:2])
        for library in sorted((stage / "torch_ferry").rglob(f"torch-{minor}/*.so")):
            if lost := symbols.missing(library, site / "torch"):
                sys.exit(f"release: {library}: torch {torch} does not define {', '.join(lost)}")


def tarball(stage, work, out):
    """Packs the command, for machines without Python."""
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
                        help="the folder for builds; the release goes to its folder dist")
    parser.add_argument("--cuda-headers", type=pathlib.Path, required=True,
                        help="the folder of the headers of CUDA 13")
    parser.add_argument("--torch", metavar="V", action="append", choices=found.torches(),
                        help="only for this version of torch; may be given again")
    parser.add_argument("--python", metavar="V", action="append", choices=found.PYTHONS,
                        help="only for this version of Python; may be given again")
    parser.add_argument("--headers", metavar="V=FOLDER", action="append", default=[],
                        type=found.from_headers,
                        help="the folder of Python.h, for a Python without an interpreter here")
    options = parser.parse_args()
    work = options.work.resolve()
    torches = sorted(options.torch or found.torches(), key=found.torches().index)
    here = found.pythons()
    for python in options.headers:
        here.setdefault(python.minor, python)
    if missing := [each for each in options.python or found.PYTHONS if each not in here]:
        print(f"release: found no headers of Python {', '.join(missing)}: no wheels for these",
              file=sys.stderr)
    pythons = [python for minor, python in here.items() if minor in (options.python or here)]
    if not pythons or not pythons[0].program:
        print("release: expected an interpreter with headers for the first Python, because CMake "
              "runs it", file=sys.stderr)
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
    check_symbols(builds.stage, sites)
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
