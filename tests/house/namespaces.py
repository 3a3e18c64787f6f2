"""Which namespace a room's files open, that no two of its headers define the same type, and that
no name of a type stands in more than four rooms: a reader would have to ask which is meant.

A source of real may open that of real/include, too, where it includes from there: it defines what
users call. A file that instantiates templates, and defines nothing else, opens theirs: C++ wants
it so.
"""

import re

from arrows import includes
from rooms import PUBLIC, TABLE, room_of
from tree import HEADERS, PRODUCTION, Finding, name_of, parent, suffix, top

# What is specialised or extended where it lives: LibTorch's, nlohmann's, RapidCheck's, CLI11's.
FOREIGN = {"c10", "torch", "at", "std", "nlohmann", "rc", "CLI"}


NAMED = re.compile(r"^[ \t]*(?:class|struct|enum class|enum)[ \t]+(\w+)(?:[ \t]+final)?\s*"
                   r"(?::(?!:)[^;{]*)?\{", re.M)
ROOMS_MAX = 4
# The seam's words: each world has its own (shared/seam/device.h).
OF_THE_SEAM = {"StreamScope"}

INSTANCE = re.compile(r"^\s*(?:\w+ )?template class ", re.M)


def outermost(tree, path):
    """The namespaces that the file opens first, but for foreign and unnamed ones."""
    for opening in tree.scan(path).openings:
        if opening.name and opening.name.split("::")[0] not in FOREIGN:
            yield opening


def within(name, namespace):
    return name == namespace or name.startswith(f"{namespace}::")


def defines_public(tree, path):
    if top(path) != "real" or suffix(path) in HEADERS:
        return False
    return any(top(target) == "ferry" for _, _, target in includes(tree, path))


def instantiates(tree, path):
    return INSTANCE.search(tree.text(path)) and not tree.scan(path).types


def judge(tree, path, room, public):
    """public: what sources that define what users call may open as well, or None."""
    found, openings = [], list(outermost(tree, path))
    if not openings and name_of(path) != "main.cpp":
        why = f"{room.namespace} ({TABLE}:{room.line})"
        found.append(Finding(path, 1, "opens no namespace", why))
    for opening in openings:
        also = public and within(opening.name, public) and defines_public(tree, path)
        also = also or (within(room.namespace, opening.name) and instantiates(tree, path))
        if not within(opening.name, room.namespace) and not also:
            why = f"{room.namespace} or one in it ({TABLE}:{room.line})"
            found.append(Finding(path, opening.line, f"opens {opening.name}", why))
    return found


def doubles(tree):
    """Types of one name that two headers of one namespace define."""
    first, found = {}, []
    for path in tree.cpp_files:
        if top(path) not in PRODUCTION or suffix(path) not in HEADERS:
            continue
        for kind in tree.scan(path).types:
            name = f"{kind.namespace}::{kind.name}"
            other, line = first.setdefault(name, (path, kind.line))
            if other != path:
                why = f"one of a name in a namespace ({other}:{line})"
                found.append(Finding(path, kind.line, f"defines {name} again", why))
    return found


def crowds(tree):
    """Names of types, of nested ones as well, that stand in too many rooms: found in the last."""
    places = {}
    for path in tree.cpp_files:
        if top(path) in ("tests", "bench"):
            continue
        text = tree.text(path)
        for named in NAMED.finditer(text):
            line = text.count("\n", 0, named.start(1)) + 1
            places.setdefault(named[1], {}).setdefault(room_of(path), (path, line))
    for name, rooms in places.items():
        if len(rooms) > ROOMS_MAX and name not in OF_THE_SEAM:
            yield Finding(*rooms[max(rooms)], f"{name} is a type in {len(rooms)} rooms",
                          f"a name of its own ({', '.join(sorted(rooms))})")


def check(tree, rooms):
    found, public = [*doubles(tree), *crowds(tree)], rooms.get(parent(PUBLIC[0]))
    for path in tree.cpp_files:
        room = rooms.get(room_of(path))
        if room and room.namespace != "*":
            found += judge(tree, path, room, public and public.namespace)
    return found
