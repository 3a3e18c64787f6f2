"""How old a system may be, and its libraries as a linker is to see them.

The libraries that we link with are Debian 11's, and in them is what systems lack that are older
still: RHEL 8, Debian 10, and those for which PyTorch's wheels are (manylinux_2_28). A linker takes
of each function the version that is not marked as an older one. So in copies that are for linkers
alone what is too new is marked so, and the newest that is not is marked so no more.
"""

import re
import struct

import elf

FLOOR = {"GLIBC": "2.28", "GLIBCXX": "3.4.25", "CXXABI": "1.3.11", "GCC": "7.0.0"}
VERSION = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC)_(\S+)")


def number(version):
    """Its parts; what is none (GLIBC_ABI_DT_RELR) is newer than all that are."""
    return [int(part) if part.isdigit() else 1 << 30 for part in version.split(".")]


def newer(version, floor=FLOOR):
    """Whether it is newer than the floor of its kind, where it is of such a kind."""
    found = VERSION.fullmatch(version)
    return bool(found) and number(found[2]) > number(floor[found[1]])


def versioned(data):
    """(symbol, where its version's number is, its version's name) of all that a library defines."""
    names = elf.version_names(data)
    table = next((one for one in elf.sections(data) if one.type == elf.VERSIONS), None)
    for symbol in elf.symbols(data, elf.DYNAMIC_SYMBOLS) if table else ():
        at = table.offset + 2 * symbol.index
        (version,) = struct.unpack_from("<H", data, at)
        if symbol.section != elf.UNDEFINED and version & ~elf.OLDER in names:
            yield symbol, at, names[version & ~elf.OLDER]


def lowered(data):
    """A library in which a linker finds nothing that is newer than FLOOR, unless told a version."""
    out, hidden, left = bytearray(data), set(), {}
    for symbol, at, version in versioned(data):
        (mark,) = struct.unpack_from("<H", data, at)
        if newer(version) and not mark & elf.OLDER:
            struct.pack_into("<H", out, at, mark | elf.OLDER)
            hidden.add(symbol.name)
        elif not newer(version) and mark & elf.OLDER and VERSION.fullmatch(version):
            left.setdefault(symbol.name, []).append(
                (number(VERSION.fullmatch(version)[2]), at, mark))
    for name in hidden & left.keys():
        _, at, mark = max(left[name])
        struct.pack_into("<H", out, at, mark & ~elf.OLDER)
    return bytes(out)
