"""The results as one file that is small enough to travel, and back."""

import pathlib
import tarfile

MOST_BYTES = 16 << 20
NAME = "ferry-gpu.tar.gz"
# What a part printed; of a longer one the beginning and the end. Other files are whole or left out.
LOGS = ("stdout", "stderr")
MOST_OF_A_LOG = 1 << 20


def shorten(path):
    """Cuts the middle of a log out."""
    size = path.stat().st_size
    if size <= MOST_OF_A_LOG:
        return
    half = MOST_OF_A_LOG // 2
    with open(path, "rb") as file:
        head = file.read(half)
        file.seek(size - half)
        tail = file.read()
    cut = f"\n… {size - 2 * half} bytes are left out here …\n".encode()
    path.write_bytes(head + cut + tail)


def pack_results(out, most_bytes=MOST_BYTES):
    """Writes out/NAME, whole or not at all, and returns its path. Where the files are too much even
    so, the largest stay behind, and the archive says which."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and NAME not in path.name
                   and path.name != "left-out.txt")
    for path in files:
        if path.name in LOGS:
            shorten(path)
    by_size = sorted(files, key=lambda path: path.stat().st_size)
    left_out = []
    while True:
        note = out / "left-out.txt"
        note.write_text("".join(f"{path.relative_to(out)}\n" for path in left_out))
        written = out / (NAME + ".new")
        with tarfile.open(written, "w:gz") as archive:
            for path in sorted(by_size) + [note]:
                archive.add(path, arcname=str(path.relative_to(out)))
        if written.stat().st_size <= most_bytes or not by_size:
            return written.replace(out / NAME)
        left_out.append(by_size.pop())


class NotOurs(Exception):
    """A file that is no archive of results."""


def unpack_results(archive, out):
    try:
        unpack_members(archive, out)
    except tarfile.TarError:
        raise NotOurs(f"{archive}: expected an archive of results ({NAME})") from None


def unpack_members(archive, out):
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            path = pathlib.PurePosixPath(member.name)
            if not member.isfile() or path.is_absolute() or ".." in path.parts:
                raise NotOurs(f"{archive}: {member.name}: expected a file of results")
            file = out.joinpath(*path.parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(packed.extractfile(member).read())
