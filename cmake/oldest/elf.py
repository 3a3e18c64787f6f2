"""Reads the sections, symbols and version names of ELF files for x86-64, and changes symbols.

floor.py reads the versions of shared libraries with it, and nonshared.py changes the symbols of
objects. symbols() gives the symbols that other files see: those that the file defines, and those
that it needs (UNDEFINED). Symbol.put() writes one back into the file's bytes. It changes neither
the symbol's name nor the size of the file.

A file that is not 64-bit little-endian ELF fails an assertion. The machine is not checked.
"""

import struct
import typing

ELF64_LITTLE = b"\x7fELF\x02\x01"
SECTION = struct.Struct("<IIQQQQIIQQ")  # name type flags address offset size link info align entry
SYMBOL = struct.Struct("<IBBHQQ")  # name info other section value size

SYMBOL_TABLE, DYNAMIC_SYMBOLS = 2, 11  # types of sections
VERSION_DEFINITIONS, VERSIONS = 0x6FFFFFFD, 0x6FFFFFFF
LOCAL, GLOBAL, WEAK, UNIQUE = 0, 1, 2, 10  # bindings of symbols
HIDDEN = 2
UNDEFINED = 0
OLDER = 0x8000  # of a symbol's version: no linker takes it unless it is named


class Section(typing.NamedTuple):
    type: int
    offset: int
    size: int
    link: int
    info: int


class Symbol(typing.NamedTuple):
    at: int  # where it is in the file
    index: int
    name: str
    binding: int
    type: int
    other: int
    section: int
    value: int
    size: int

    def put(self, out, **changes):
        """Into the file's bytes; never another name."""
        new = self._replace(**changes)
        (name,) = struct.unpack_from("<I", out, self.at)
        SYMBOL.pack_into(out, self.at, name, new.binding << 4 | new.type, new.other, new.section,
                         new.value, new.size)


def text_at(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


def sections(data):
    assert data.startswith(ELF64_LITTLE), "not ELF for x86-64"
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    read = [SECTION.unpack_from(data, start + i * size) for i in range(count)]
    return [Section(one[1], *one[4:8]) for one in read]


def symbols(data, table):
    """Those with a name that other files see, of the tables of this type."""
    every = sections(data)
    for section in (one for one in every if one.type == table):
        names = every[section.link].offset
        for index in range(section.info, section.size // SYMBOL.size):
            at = section.offset + index * SYMBOL.size
            name, info, other, place, value, size = SYMBOL.unpack_from(data, at)
            yield Symbol(at, index, text_at(data, names + name), info >> 4, info & 15, other,
                         place, value, size)


def version_names(data):
    """By their numbers, of a shared library that defines versions."""
    every, found = sections(data), {}
    for section in (one for one in every if one.type == VERSION_DEFINITIONS):
        at, names = section.offset, every[section.link].offset
        for _ in range(section.info):
            _, _, number, _, _, first, following = struct.unpack_from("<HHHHIII", data, at)
            (name,) = struct.unpack_from("<I", data, at + first)
            found[number] = text_at(data, names + name)
            at += following
    return found
