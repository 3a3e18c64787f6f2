"""What a newer libstdc++ has and an older one lacks, as an archive of objects.

A module in another's process shares that process's libstdc++, or two of them free each other's
memory and do not know each other's exceptions. So in each object of the newer libstdc++.a that
defines something new, what the old shared library has as well becomes undefined: it comes from
there, and from there alone. What is left becomes hidden: it is the module's own.
"""

import subprocess

import elf


def exported(library):
    """What a linker finds in a shared library: its symbols in their default versions."""
    lines = subprocess.run(
        ["nm", "--dynamic", "--extern-only", "--defined-only", "--with-symbol-versions", library],
        check=True, capture_output=True, text=True).stdout.splitlines()
    names = [line.split()[-1] for line in lines]
    return {name.split("@")[0] for name in names if "@" not in name or "@@" in name}


def members(archive):
    """(name, bytes) of each object of an archive in GNU's format."""
    data, at, long_names = archive.read_bytes(), 8, b""
    while at + 60 <= len(data):
        name, size = data[at:at + 16].decode().rstrip(), int(data[at + 48:at + 58])
        body = data[at + 60:at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            long_names = body
        elif name[0] == "/" and name[1:].isdigit():
            yield long_names[int(name[1:]):].split(b"/\n", 1)[0].decode(), body
        elif name != "/":
            yield name.rstrip("/"), body


def without(body, old):
    """An object whose symbols of `old` are undefined, and how many others it defines."""
    out, left = bytearray(body), 0
    for symbol in elf.symbols(body, elf.SYMBOL_TABLE):
        if symbol.section == elf.UNDEFINED:
            continue
        if symbol.name in old:
            symbol.put(out, binding=elf.GLOBAL, other=0, section=elf.UNDEFINED, value=0, size=0)
        else:
            left += 1
            symbol.put(out, binding=elf.WEAK if symbol.binding == elf.UNIQUE else symbol.binding,
                       other=symbol.other & ~3 | elf.HIDDEN)
    return bytes(out), left


def nonshared(archive, library, folder):
    """The objects with what `archive` has and the shared `library` has not, in a folder."""
    old, paths = exported(library), []
    for index, (name, body) in enumerate(members(archive)):
        changed, left = without(body, old)
        if left:
            paths.append(folder / f"{index}-{name}")
            paths[-1].write_bytes(changed)
    return paths
