"""Errors of the core are thrown as exceptions of a world (shared/seam/error.h).

A kind of error is no std::exception by itself: thrown as it is, no handler of the program's sees
it. A kind is what derives from Error; a name that other types have as well is not judged.
"""

import re

from tree import Finding

DERIVED = re.compile(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*:\s*(?:public\s+)?((?:\w+::)*\w+)")
THROW = re.compile(r"\bthrow\s+(?:\w+::)*(\w+)\s*[({]")


def kinds(tree):
    """The names of the kinds of error, Error itself among them."""
    bases = {}
    for path in tree.cpp_files:
        for name, base in DERIVED.findall(tree.cpp(path).code):
            bases.setdefault(name, set()).add(base.rpartition("::")[2])
    found, size = {"Error"}, 0
    while len(found) > size:
        size = len(found)
        found |= {name for name, of in bases.items() if of <= found}
    return found


def check(tree):
    names, found = kinds(tree), []
    for path in tree.cpp_files:
        cpp = tree.cpp(path)
        for match in THROW.finditer(cpp.code):
            if match[1] in names:
                line = cpp.line(match.start())
                found.append(Finding(path, line, f"throws {match[1]} itself", "make_error<Tensor>"))
    return found
