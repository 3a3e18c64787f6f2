"""Reads and writes program files in Python. formats/PROGRAM.md describes the lines.

Statements, globals and signatures stay the plain dicts of their lines, so reading and writing are
one json call for each line. `torch_ferry.check` checks that the lines fit together. Both use the
standard library only: to read programs you need no torch.
"""

import json
import math
import os
import tempfile
from dataclasses import dataclass, field

SCHEMA = 1
ITEM_BYTES = {
    "f64": 8, "f32": 4, "bf16": 2, "f16": 2, "f8": 1,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1,
}


class ProgramError(Exception):
    """The file is not a program, or the program contradicts itself."""


class WriteError(OSError):
    """A file cannot be written; the message says which file, and why."""


class CaptureError(Exception):
    """The step cannot be captured; the message says why."""


@dataclass
class Code:
    """One code: `signature` is its own line, and `statements` are the lines after it."""

    signature: dict
    statements: list = field(default_factory=list)

    @property
    def kind(self):
        return self.signature["kind"]

    def slots(self, key):
        return self.signature.get(key, [])


@dataclass
class Program:
    """A program: its name, texts about it, and the lines of its globals and codes."""

    name: str
    about: dict = field(default_factory=dict)
    globals: list = field(default_factory=list)
    codes: list = field(default_factory=list)

    @property
    def main(self):
        return next(code for code in self.codes if code.kind == "main")

    def lines(self):
        header = {"ferry": "program", "schema": SCHEMA, "name": self.name}
        if self.about:
            header["about"] = self.about
        yield header
        yield from self.globals
        for code in self.codes:
            yield code.signature
            yield from code.statements

    def text(self):
        return "".join(json_line(line) for line in self.lines())

    def write(self, path):
        """Writes the program to a file, whole or not at all. Raises WriteError."""
        path = os.fspath(path)
        handle, temporary = _neighbour(path)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(self.text())
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, path)
        except OSError as error:  # for example, the disk is full
            os.unlink(temporary)
            raise WriteError(f"cannot write {path}: {error.strerror}") from error
        except BaseException:
            os.unlink(temporary)
            raise


def _neighbour(path):
    """Opens a new file beside `path`. Returns its handle and its name."""
    if os.path.exists(path) and not os.path.isfile(path):  # the rename would replace a device
        raise WriteError(f"cannot write {path}: not a regular file")
    try:
        return tempfile.mkstemp(prefix=".ferry-", dir=os.path.dirname(path) or ".")
    except OSError as error:
        raise WriteError(f"cannot create a file beside {path}: {error.strerror}") from error


def check_writable(path):
    """Raises WriteError if write(path) would fail. Call it before long work for this file."""
    handle, temporary = _neighbour(os.fspath(path))
    os.close(handle)
    os.unlink(temporary)


def json_line(line):
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"


def load(path):
    """Reads a program file. Raises ProgramError, with the file and the line."""
    program = None
    try:
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if not text.strip():
                    continue
                program = _take_line(program, text, f"{path}:{number}")
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramError(f"{path}: {error}") from error
    if program is None:
        raise ProgramError(f"{path}:1: expected the header of a program, found nothing")
    return program


def _take_line(program, text, place):
    try:
        line = json.loads(text)
    except json.JSONDecodeError as error:
        raise ProgramError(f"{place}: expected a JSON object: {error}") from error
    if not isinstance(line, dict):
        raise ProgramError(f"{place}: expected a JSON object")
    if program is None:
        if line.get("ferry") != "program" or line.get("schema") != SCHEMA or "name" not in line:
            raise ProgramError(f'{place}: expected the header {{"ferry":"program","schema":1,…}}')
        return Program(line["name"], line.get("about", {}))
    if "global" in line:
        if program.codes or line["global"] != len(program.globals):
            raise ProgramError(f"{place}: expected globals 0, 1, 2, … before the codes")
        program.globals.append(line)
    elif "code" in line:
        if line["code"] != len(program.codes):
            raise ProgramError(f"{place}: expected code {len(program.codes)}")
        if line.get("kind") not in ("main", "segment", "body"):
            raise ProgramError(f'{place}: expected "kind": main, segment or body')
        program.codes.append(Code(line))
    elif not program.codes:
        raise ProgramError(f"{place}: expected a global or a code before the statements")
    else:
        program.codes[-1].statements.append(line)
    return program


def contiguous_strides(shape):
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return strides[::-1]


def type_fields(dtype, shape, strides=None, offset=0):
    """Returns the keys of a tensor type, without those that a contiguous tensor does not need."""
    fields = {"dtype": dtype, "shape": list(shape)}
    if strides is not None and list(strides) != contiguous_strides(shape):
        fields["strides"] = list(strides)
    if offset:
        fields["offset"] = offset
    return fields


def end_bytes(fields):
    """Returns the offset in bytes, within its storage, of the end of a tensor of this type."""
    shape = fields["shape"]
    if 0 in shape:
        return 0
    strides = fields.get("strides", contiguous_strides(shape))
    last = sum((size - 1) * stride for size, stride in zip(shape, strides))
    return (fields.get("offset", 0) + last + 1) * ITEM_BYTES[fields["dtype"]]


def tensor_bytes(fields):
    return math.prod(fields["shape"]) * ITEM_BYTES[fields["dtype"]]
