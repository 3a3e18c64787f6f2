"""What the bad trees are made of: a small house of one room, and a file with a fault in it."""

import typing

B = "shared/a/b.h"


class Case(typing.NamedTuple):
    name: str
    files: dict  # path: text
    expected: list  # "path:line", each once
    formatted: bool = False  # whether clang-format judges it, too


def header(*lines, namespace="ferry"):
    """A file with these lines first, and a namespace after them."""
    return "".join(f"{line}\n" for line in (*lines, f"namespace {namespace} {{}}"))


def include(target):
    return header(f'#include "{target}"')


def rooms(*lines):
    return {"cmake/rooms.txt": "".join(f"{line}\n" for line in lines)}


def alone(files):
    """A tree of one room, with a header of its own and these files."""
    return {**rooms("shared/a : ferry :"), "shared/a/a.h": header(), **files}


def fault(name, text, *lines, path=B):
    """A file that is wrong in these lines, in a tree of one room."""
    return Case(name, alone({path: text}), [f"{path}:{line}" for line in lines])


def bad_table(name, line, *lines):
    """A table of which this line is wrong."""
    return Case(name, alone(rooms(*lines)), [f"cmake/rooms.txt:{line}"])
