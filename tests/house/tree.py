"""The tree that is judged: which files there are, and their text.

Git says which files are ours, also those that are not added yet. Where there is no checkout (an
archive, the bad trees of the self-test) every file counts but what builds leave.
"""

import functools
import pathlib
import shutil
import subprocess
import typing

from cpp_text import CppText
from scan import Scan

CPP = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".inl"}
HEADERS = {".h", ".hpp", ".cuh", ".inl"}
PRODUCTION = ("shared", "formats", "scenarios", "sim", "plan", "verify", "real", "cli")
LEFT_BY_BUILDS = {".git", ".cache", "build", "__pycache__"}


class Finding(typing.NamedTuple):
    path: str
    line: int
    what: str
    expected: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}: {self.expected}"


def parent(path):
    """The folder of a path, "" for the root."""
    return path.rpartition("/")[0]


def name_of(path):
    return path.rpartition("/")[2]


def stem(path):
    return name_of(path).partition(".")[0]


def suffix(path):
    return pathlib.PurePosixPath(path).suffix


def top(path):
    return path.split("/")[0]


def listed(root):
    """The paths of the tree's files, as Git lists them or as they lie there."""
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"]
        run = subprocess.run(command, capture_output=True, check=False)
        if run.returncode == 0:
            return run.stdout.decode().split("\0")[:-1]
    paths = [path.relative_to(root) for path in root.rglob("*")]
    return [path.as_posix() for path in paths if not LEFT_BY_BUILDS & set(path.parts)]


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        names = sorted(set(listed(self.root)))
        self.files = [name for name in names if (self.root / name).is_file()]
        self.file_set = set(self.files)
        self.folders = set()
        for path in self.files:
            while path := parent(path):
                self.folders.add(path)
        # One for each tree, so that nothing of it outlives it.
        self.text = functools.cache(self._text)
        self.lines = functools.cache(self._lines)
        self.cpp = functools.cache(self._cpp)
        self.scan = functools.cache(self._scan)

    def __contains__(self, path):
        return path in self.file_set or path in self.folders

    def with_suffix(self, *suffixes):
        return [path for path in self.files if suffix(path) in suffixes]

    @functools.cached_property
    def cpp_files(self):
        return self.with_suffix(*CPP)

    @functools.cached_property
    def shell_scripts(self):
        """By their first line: `dev` has no suffix."""
        plain = [path for path in self.files if suffix(path) in ("", ".sh")]
        return [path for path in plain if self.text(path).split("\n")[0].endswith("sh")]

    def _text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def _lines(self, path):
        return self.text(path).removesuffix("\n").split("\n")

    def _cpp(self, path):
        return CppText(self.text(path))

    def _scan(self, path):
        return Scan(self.cpp(path))
