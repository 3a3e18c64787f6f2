"""The table of rooms (cmake/rooms.txt), and what may be wrong with the table alone."""

import re
import typing

from tree import Finding, parent

TABLE = "cmake/rooms.txt"
# Users include "ferry/*.h" of a component: the room is real/include, or verify/include.
PUBLIC = ("real/include/ferry", "verify/include/ferry")

# What holds whatever the table says, so that no line of it loosens the house by mistake: which
# folders the rooms of a folder may see, the longest name counts. Other tests, benchmarks and
# examples see whom they like.
SIMULATED = {"sim", "scenarios", "formats", "shared"}
MAY_SEE = {
    "shared": {"shared"},
    "formats": {"formats", "shared"},
    "scenarios": {"scenarios", "formats", "shared"},
    "sim": SIMULATED,
    "plan": {"plan", *SIMULATED},
    "verify": {"verify", *SIMULATED},
    "real": {"real", "scenarios", "formats", "shared"},
    "vgpu": {"vgpu", "real", *SIMULATED},
    # `ferry` links no RapidCheck, which `ferry-verify` does.
    "cli": {"cli", "plan", *SIMULATED},
    "cli/verify": {"cli", "verify", *SIMULATED},
    # Tests link what they test: an edit of the planner or the verifier is nothing to the core's.
    "tests/shared": {"tests/shared", "tests/sim", "tests/support", *SIMULATED},
    "tests/sim/support": {"tests/sim/support", "tests/support", *SIMULATED},
}
# Rooms that moved, and where to.
MOVED = {"sim/plan": "plan", "sim/verify": "verify", "sim/include": "verify/include"}


class Room(typing.NamedTuple):
    folder: str
    namespace: str
    sees: list
    line: int


def is_in(folder, ancestor):
    return folder == ancestor or folder.startswith(ancestor + "/")


def breaks_direction(folder, seen):
    """Why no room of the one folder may see one of the other, or None."""
    who = max((each for each in MAY_SEE if is_in(folder, each)), key=len, default=None)
    if who is None or any(is_in(seen, each) for each in MAY_SEE[who]):
        return None
    return f"{who} sees only {', '.join(sorted(MAY_SEE[who]))}"


def read_table(tree):
    """The rooms by folder, and the lines that cannot be read."""
    rooms, found = {}, []
    if TABLE not in tree.file_set:
        return rooms, [Finding(TABLE, 1, "no such file", "the table of rooms")]
    for number, line in enumerate(tree.lines(TABLE), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\S+) : (\S+) :((?: \S+)*)", line)
        if not match:
            found.append(Finding(TABLE, number, line, "folder : namespace : rooms that it may see"))
        elif match[1] in rooms:
            found.append(Finding(TABLE, number, f"{match[1]} again", "a line for each room"))
        else:
            rooms[match[1]] = Room(match[1], match[2], match[3].split(), number)
    return rooms, found


def room_of(path):
    folder = parent(path)
    return parent(folder) if folder in PUBLIC else folder


def way_back(rooms, start):
    """The shortest circle through a room, as the rooms on it, or None."""
    came_from, queue = {}, [start]
    for room in queue:
        for seen in sorted(rooms[room].sees) if room in rooms else ():
            if seen == start:
                circle = [room]
                while circle[-1] != start:
                    circle.append(came_from[circle[-1]])
                return circle[::-1]
            if seen not in came_from:
                came_from[seen] = room
                queue.append(seen)
    return None


def circles(rooms):
    told = set()
    for start in sorted(rooms):
        circle = way_back(rooms, start)
        if circle and not told & set(circle):
            told |= set(circle)
            text = " -> ".join([*circle, start])
            yield Finding(TABLE, rooms[start].line, f"a circle, {text}", "arrows that go one way")


def check_table(tree, rooms):
    """What the table says of rooms that are not there, and what it may not say."""
    lived_in = {room_of(path) for path in tree.cpp_files}
    found = list(circles(rooms))
    for room in rooms.values():
        if room.folder not in lived_in:
            found.append(Finding(TABLE, room.line, f"{room.folder} has no files", "a room in use"))
        for old, new in MOVED.items():
            if is_in(room.folder, old):
                found.append(Finding(TABLE, room.line, room.folder, f"it in {new}"))
        for seen in room.sees:
            what = f"{room.folder} -> {seen}"
            why = breaks_direction(room.folder, seen)
            if seen not in rooms:
                found.append(Finding(TABLE, room.line, what, "a room of the table"))
            elif why:
                found.append(Finding(TABLE, room.line, what, why))
    return found
