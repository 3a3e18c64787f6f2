"""The tests mirror the tree: tests/ROOM/NAME_test.cpp tests the unit NAME of ROOM.

A unit is a header or source by its name. A test's name is a unit's, or begins with one and `_`; or
the test stands in a folder that is named for a unit (tests/real/api/checkpoint).
"""

import re

from rooms import PUBLIC
from tree import CPP, HEADERS, Finding, name_of, parent, stem, suffix, top

TEST = re.compile(r"(\w+)_(test|prop)\.cpp")
NOT_MIRRORED = ("tests/fibers", "tests/fuzz", "tests/house", "tests/python", "tests/support")
STANDS_FOR = {"real/gpu": "real/cuda"}  # the same device, on a real one
# Helpers that have tests of their own.
DOUBLES = ("tests/support", "vgpu/runtime", "vgpu/operators")

# The parts of the offload core, and what they are part of: each has a test by its own name.
MUST_HAVE = {"shared/offload": ("core", "inbound", "offload_core", "outbound", "parcel")}


def units(tree, folder, suffixes=frozenset(CPP)):
    """{name: file} of the folder's units, a header before a source."""
    files = [p for p in tree.cpp_files if parent(p) == folder and suffix(p) in suffixes]
    return {stem(path): path for path in sorted(files, key=lambda p: suffix(p) in HEADERS)}


def of_room(tree, room):
    public = {}
    for folder in PUBLIC:
        if top(room) == top(folder):
            public |= units(tree, folder)
    return units(tree, room) | public


def longest(names, name):
    """The unit that a test's name says, the longest of those that fit, or None."""
    fitting = [unit for unit in names if name == unit or name.startswith(f"{unit}_")]
    return max(fitting, key=len, default=None)


def tested(tree, path):
    """(room, unit or None) that the test at this path is of."""
    folder, name = parent(path).removeprefix("tests/"), TEST.fullmatch(name_of(path))[1]
    folder = STANDS_FOR.get(folder, folder)
    unit = longest(of_room(tree, folder), name)
    if not unit and name_of(folder) in of_room(tree, parent(folder)):
        return parent(folder), name_of(folder)
    return folder, unit


def tests(tree):
    for path in tree.cpp_files:
        mirrored = top(path) == "tests" and parent(path) not in NOT_MIRRORED
        if mirrored and TEST.fullmatch(name_of(path)):
            yield path


def untested(tree, rooms):
    """The units of these rooms that no test has in its name."""
    named = {tested(tree, path) for path in tests(tree)}
    for room in rooms:
        for unit, path in sorted(units(tree, room).items()):
            if (room, unit) not in named:
                yield path


def check(tree):
    found = []
    for path in tests(tree):
        room, unit = tested(tree, path)
        folders = (parent(path), *DOUBLES)
        helpers = {name for folder in folders for name in units(tree, folder, HEADERS)}
        if not unit and not longest(helpers, TEST.fullmatch(name_of(path))[1]):
            why = f"a name that begins with a unit of {room}"
            found.append(Finding(path, 1, "mirrors nothing", why))
    for room, names in MUST_HAVE.items():
        for path in untested(tree, [room]):
            if stem(path) in names:
                where = f"tests/{room}/{stem(path)}_test.cpp"
                found.append(Finding(path, 1, "has no test of its own", where))
    return found
