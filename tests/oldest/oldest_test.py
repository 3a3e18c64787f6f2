"""The toolchain of cmake/oldest_glibc.cmake: what it builds runs on systems older than ours.

    oldest_test.py [ROOT...]

Each ROOT is the folder of a system (of debootstrap, say) to run it in as well, as root. No part of
`./dev test`, for the first time it takes Debian 11's packages from a mirror.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CMAKE = HERE.parents[1] / "cmake"
CAUGHT = "a runtime error, out of range, Invalid argument, /a/path, std::bad_alloc"
USED = "0.1 1.17494 /etc/apt/sources.list.d 47, the module's"


def output(*command, status=0):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode == 0) == (status == 0), f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def build(folder, *options):
    output("cmake", "-S", HERE, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *options)
    output("cmake", "--build", folder)
    return [folder / name for name in ("libguest.so", "host", "alone")]


def needs(*files, status=0):
    return output(sys.executable, CMAKE / "oldest/needs.py", *files, status=status)


def run(guest, host, alone, root=None):
    """In another system these are copies."""
    entered = []
    if root:
        entered = ["chroot", root]
        for file in (guest, host, alone):
            shutil.copy(file, root / "tmp")
        guest, host, alone = ("/tmp/" + file.name for file in (guest, host, alone))
    for command, expected in (([alone], USED), ([host, guest], CAUGHT + USED)):
        said = output(*entered, *command).strip()
        assert said == expected, f"{command}: {said!r}, expected {expected!r}"


def main(roots):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ours = build(folder / "ours")
        for file in ours:
            assert "newer than GLIBC_" in needs(file, status=1)
        assert "newer than GLIBCXX_" in needs(ours[0], status=1)
        old = build(folder / "old", f"-DCMAKE_TOOLCHAIN_FILE={CMAKE / 'oldest_glibc.cmake'}")
        print(needs(*old), end="")
        assert "needs gettid, of no library" in needs(folder / "old/liblate.so", status=1)
        assert "libstdc++" in needs(old[0]) and "libstdc++" not in needs(old[2])
        run(*old)
        run(old[0], ours[1], old[2])  # the process's libstdc++ is a newer one
        for root in roots:
            run(*old, root=pathlib.Path(root))
            print(f"{root}: runs")
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1:])
