"""Every include against the table of rooms. An arrow: a room, and another that it includes from."""

import collections
import re

from rooms import PUBLIC, TABLE, breaks_direction, room_of
from tree import Finding, parent, top

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"[a-z_0-9]+")  # <vector>; <x.h> and <lib/x> are not the standard library's
STANDARD_ALONE = ("shared/", "sim/choices/")


def includes(tree, path):
    """(line, quote, target) of each include, those of every #if."""
    cpp = tree.cpp(path)
    for offset, text in cpp.directives:
        match = INCLUDE.match(text)
        if match:
            yield cpp.line(offset), match[1], match[2]


def target_of(tree, rooms, quote, target):
    """(file of ours or None, how it is to be written or None)."""
    ours = {top(folder) for folder in rooms} & {top(folder) for folder in tree.folders}
    if top(target) == "ferry":
        files = [f"{parent(folder)}/{target}" for folder in PUBLIC]
        return next((file for file in files if file in tree.file_set), files[0]), None
    if quote == "<":
        return None, f'"{target}", if it is ours' if top(target) in ours else None
    if parent(target) in PUBLIC:
        return None, f'"{target.removeprefix(f"{parent(parent(target))}/")}", as users do'
    if ".." in target.split("/") or top(target) not in ours:
        return None, "an include of ours is written from the root"
    return target, None


def judge(tree, rooms, path, include):
    """(the room that is included from or None, what is wrong or None)."""
    line, quote, target = include
    file, form = target_of(tree, rooms, quote, target)
    what = f"includes {target}"
    if form:
        return None, Finding(path, line, what, form)
    if file is None:
        alone = path.startswith(STANDARD_ALONE) and not STANDARD.fullmatch(target)
        why = "the standard library alone, in shared and sim/choices"
        return None, Finding(path, line, what, why) if alone else None
    if file not in tree.file_set:
        return None, Finding(path, line, what, f"a file that exists (no {file})")
    room, seen = room_of(path), room_of(file)
    why = breaks_direction(room, seen)
    if not why and room in rooms and seen != room and seen not in rooms[room].sees:
        why = f"{room} may not see {seen} ({TABLE}:{rooms[room].line})"
    return seen, Finding(path, line, what, why) if why else None


def arrows(tree, rooms):
    """How many include lines each arrow has: {room: {room it sees: lines}}."""
    counts, found = collections.defaultdict(collections.Counter), []
    for path in tree.cpp_files:
        if top(path) == "cmake":  # torch_pch.cpp is what a precompiled header is built from
            continue
        for include in includes(tree, path):
            seen, finding = judge(tree, rooms, path, include)
            if seen and seen != room_of(path):
                counts[room_of(path)][seen] += 1
            if finding:
                found.append(finding)
    return counts, found


def check(tree, rooms):
    counts, found = arrows(tree, rooms)
    homeless = {}
    for path in tree.cpp_files:
        if top(path) != "cmake" and room_of(path) not in rooms:
            homeless.setdefault(room_of(path), path)
    for folder, path in homeless.items():
        found.append(Finding(path, 1, f"{folder or 'the root'} has code", f"a room of {TABLE}"))
    for room in rooms.values():
        for seen in room.sees:
            if seen in rooms and seen != room.folder and not counts[room.folder][seen]:
                what = f"{room.folder} -> {seen}"
                found.append(Finding(TABLE, room.line, what, "an arrow that an include uses"))
    return found
