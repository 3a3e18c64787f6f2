#!/usr/bin/env python3
"""A g++ of this machine whose world is an old Linux: prints the folder, and makes it if need be.

What it has of the system is Debian 11's (packages.lock), fetched from the mirror that apt has, or
from FERRY_DEBIAN_MIRROR. Beside it are our compiler's C++ headers and what Ferry compiles in of
this machine's packages, and nothing else of /usr. Its bin/g++ finds all by its own place; CMake's
toolchain file is cmake/oldest_glibc.cmake. Exits with 7 where something is missing.
"""

import fcntl
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import floor
import nonshared

HERE = pathlib.Path(__file__).resolve().parent
LOCK = HERE / "packages.lock"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# Headers, CMake's packages and static libraries; those that are not installed CMake asks for.
OURS = ["libcli11-dev", "libfmt-dev", "libjemalloc-dev", "librapidcheck-dev",
        "libtomlplusplus-dev", "libxxhash-dev", "nlohmann-json3-dev", "libpython3-dev"]
# What of our compiler's folder the old system, or this script, has another of.
REPLACED = {"libstdc++.so", "libstdc++.a", "libgcc_s.so", "libgcc_eh.a"}
# What libstdc++'s headers use of a newer glibc than floor.FLOOR's, where they were told to.
TOO_NEW = [f"_GLIBCXX_USE_PTHREAD_{what}" for what in
           ("COND_CLOCKWAIT", "MUTEX_CLOCKLOCK", "RWLOCK_CLOCKLOCK")]


def stop(text):
    print(f"ferry: {text}", file=sys.stderr)
    sys.exit(7)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def packages():
    """(name=version, place in a mirror, SHA-256) of each package of the old system."""
    lines = [line for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    return [(name, place, digest.removeprefix("sha256:"))
            for name, place, digest in map(str.split, lines)]


def mirrors():
    if "FERRY_DEBIAN_MIRROR" in os.environ:
        return [os.environ["FERRY_DEBIAN_MIRROR"]]
    known = output("apt-get", "indextargets", "--format", "$(SITE)", "Identifier: Packages",
                   "Origin: Debian")
    return list(dict.fromkeys(known.splitlines())) or stop(
        "apt knows no mirror of Debian: run apt-get update, or name one by FERRY_DEBIAN_MIRROR")


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def fetched(name, place, digest, downloads):
    """Its file, from the first mirror that has it."""
    file = downloads / place.rsplit("/", 1)[1]
    tried = []
    for mirror in mirrors() if digest_of(file) != digest else ():
        tried.append(f"{mirror}/{place}")
        got = subprocess.run(["/usr/lib/apt/apt-helper", "download-file", tried[-1], file,
                              f"SHA256:{digest}"], capture_output=True, text=True)
        if got.returncode == 0:
            break
    if digest_of(file) != digest:
        stop(f"no {name} of Debian 11 with SHA-256 {digest}; looked for {', '.join(tried)}. Where "
             "the mirror no longer has Debian 11, name one that has by FERRY_DEBIAN_MIRROR")
    return file


def relative_links(root):
    """Links to /lib mean the old system's, not ours."""
    for link in (path for path in root.rglob("*") if path.is_symlink()):
        target = os.readlink(link)
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(root / target[1:], link.parent))


def compiler():
    """(the driver, its version, its folder of libraries)."""
    driver = shutil.which(os.environ.get("CXX", "g++")) or stop("no g++; apt-get install g++")
    driver = pathlib.Path(driver).resolve()
    if "gcc version" not in subprocess.run([driver, "-v"], capture_output=True, text=True).stderr:
        stop(f"{driver} is not GCC, whose static libstdc++ is needed")
    version = output(driver, "-dumpversion")
    return driver, version, pathlib.Path(output(driver, "-print-libgcc-file-name")).parent


def installed(wanted):
    """name=version of those of our packages that are here, with what python3-dev stands for."""
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package}=${Version}\n", *wanted,
                            "libpython3.*-dev"], capture_output=True, text=True).stdout
    return sorted(line for line in shown.split() if not line.endswith("="))


def put_compiler(root, driver, version, folder):
    """Ours, in the place where it looks for the old system's libraries before all others."""
    place = root / folder.relative_to("/")
    place.mkdir(parents=True)
    for entry in folder.iterdir():
        if entry.name not in REPLACED:
            (place / entry.name).symlink_to(entry)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy2(driver, root / "usr/bin/g++")
    headers = root / "usr/include/c++" / version
    headers.parent.mkdir()
    headers.symlink_to(f"/usr/include/c++/{version}")
    headers = f"usr/include/x86_64-linux-gnu/c++/{version}"
    shutil.copytree(f"/{headers}", root / headers)
    with (root / headers / "bits/c++config.h").open("a") as config:
        config.writelines(f"#undef {name}\n" for name in TOO_NEW)
    return place


def lower(root):
    """The old system's libraries, as one older still has them: `floor.py` says how."""
    for folder in ("lib/x86_64-linux-gnu", LIBRARIES):
        for library in (root / folder).glob("*.so*"):
            if not library.is_symlink() and library.read_bytes().startswith(b"\x7fELF"):
                library.write_bytes(floor.lowered(library.read_bytes()))


def put_libraries(root, place, folder):
    """The old shared ones, and of ours what they lack: `nonshared.py` says why."""
    shutil.copy2(root / "usr/lib/gcc/x86_64-linux-gnu/10/libgcc_eh.a", place)
    shutil.rmtree(root / "usr/lib/gcc/x86_64-linux-gnu/10")
    (place / "libgcc_s.so").write_text("GROUP ( /lib/x86_64-linux-gnu/libgcc_s.so.1 -lgcc )\n")
    later = place / "later.o"
    subprocess.run([root / "usr/bin/g++", f"--sysroot={root}", "-O2", "-fPIC", "-c",
                    HERE / "later.cpp", "-o", later], check=True)
    shutil.copy2(folder / "libstdc++.a", place)
    subprocess.run(["ar", "rsD", place / "libstdc++.a", later], check=True)
    with tempfile.TemporaryDirectory() as objects:
        new = nonshared.nonshared(folder / "libstdc++.a", root / LIBRARIES / "libstdc++.so.6",
                                  pathlib.Path(objects))
        subprocess.run(["ar", "rcsD", place / "libstdc++_nonshared.a", later, *new], check=True)
    later.unlink()
    (place / "libstdc++.so").write_text(
        f"INPUT ( /{LIBRARIES}/libstdc++.so.6 -lstdc++_nonshared )\n")


def put_packages(root, names):
    """Their headers, static libraries and CMake files, in the same places."""
    for line in output("dpkg-query", "-L", *names).splitlines() if names else ():
        path = pathlib.Path(line)
        if not line.startswith(("/usr/include/", f"/{LIBRARIES}/", "/usr/share/cmake/")) or (
                path.is_dir() and not path.is_symlink()) or path.name.startswith("libpython"):
            continue
        to = root / line[1:]
        to.parent.mkdir(parents=True, exist_ok=True)
        if ".so" in path.name:  # there for CMake's files, which look for it, and for no linker
            (root / str(path.resolve())[1:]).touch()
        elif path.is_file():
            shutil.copy2(path, to)


def make(root, downloads, driver, version, folder, ours):
    for name, place, digest in packages():
        subprocess.run(["dpkg-deb", "-x", fetched(name, place, digest, downloads), root],
                       check=True)
    shutil.rmtree(root / "usr/share")
    relative_links(root)
    lower(root)
    place = put_compiler(root, driver, version, folder)
    put_libraries(root, place, folder)
    put_packages(root, [name.split("=")[0] for name in ours])


def main():
    if platform.machine() != "x86_64" or not shutil.which("dpkg-deb"):
        stop("a build for old systems needs a Debian, or one of its kin, on x86-64")
    driver, version, folder = compiler()
    ours = installed(OURS)
    sources = [path.read_bytes() for path in sorted(HERE.glob("*")) if path.name != "needs.py"
               and path.is_file()]
    made_of = [*sources, *(text.encode() for text in ours), driver.read_bytes(),
               (folder / "libstdc++.a").read_bytes()]
    stamp = hashlib.sha256(b"\0".join(made_of)).hexdigest()[:12]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "ferry"
    downloads, root = cache / "debian-11", cache / f"sysroot-{stamp}"
    downloads.mkdir(parents=True, exist_ok=True)
    with (downloads / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():  # whole, or not at all
            with tempfile.TemporaryDirectory(dir=cache, prefix="sysroot-") as making:
                made = pathlib.Path(making) / "root"
                made.mkdir()
                make(made, downloads, driver, version, folder, ours)
                made.rename(root)
    print(root)


if __name__ == "__main__":
    main()
