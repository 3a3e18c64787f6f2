"""Classes that can be read alone: they have few members, and no data that everybody may change.

A struct is a value: it has data and no functions. In a class, what is not private has no data. A
function with a question's name (is_, has_, may_ …) is const: what has an effect is named for it.
The rooms below are held to this, file by file. Types within a class, constants and what is only
named (`using`, `friend`) are no members of it. What a base has is not seen, nor what a macro makes.
"""

import re
import typing

from heads import emptied, without_templates
from tree import Finding, parent

ROOMS = ("vgpu/runtime",)
MEMBERS_MAX = 50  # data and functions together

TYPE = re.compile(r"\b(?<!enum )(class|struct)\s+(\w+)(?:\s+final)?(?:\s*:(?!:)[^;{()]*)?\s*\{")
ANGLES = re.compile(r"<[^<>]*>")
ACCESS = re.compile(r"\s*(public|protected|private)\s*:(?!:)")
# A brace that something follows in its line is an initialiser's.
MEMBER = re.compile(r"[^;{}]*(?:\{\s*\}(?=[ \t]*\S)[^;{}]*)*(?:;|\{\s*\})")
NO_MEMBER = re.compile(r"\s*(?:using|friend|enum|class|struct|static\s+constexpr|static_assert)\b")

QUESTION = re.compile(r"(?<!static )\bbool\s+((?:is|has|may|can)_\w+)\s*\(\s*\)(?!\s*const\b)")


class Member(typing.NamedTuple):
    offset: int  # in the file
    access: str
    is_data: bool
    text: str


def end_of(code, opened):
    """Of the brace after which the code goes on."""
    depth = 1
    while depth and opened < len(code):
        depth += {"{": 1, "}": -1}.get(code[opened], 0)
        opened += 1
    return opened - 1


def is_data(declaration):
    words = without_templates(declaration)
    while (plain := ANGLES.sub("", words)) != words:
        words = plain
    return "(" not in words.partition("=")[0] and "operator" not in words


def members(keyword, body, begin):
    """What is declared between a type's braces, which begin there."""
    access, at, body = "public" if keyword == "struct" else "private", 0, emptied(body)
    while match := MEMBER.match(body, at):
        offset = at
        while label := ACCESS.match(body, offset):
            access, offset = label[1], label.end()
        declaration, at = body[offset : match.end()], match.end()
        words = declaration.strip(" \n;")
        if words and not NO_MEMBER.match(declaration):
            first = offset + len(declaration) - len(declaration.lstrip())
            yield Member(begin + first, access, is_data(words), words)


def judge(cpp, match):
    keyword, name, begin = match[1], match[2], match.end()
    found = list(members(keyword, cpp.code[begin : end_of(cpp.code, begin)], begin))
    if keyword == "class" and len(found) > MEMBERS_MAX:
        yield match.start(), f"{name} has {len(found)} members", f"at most {MEMBERS_MAX}"
    for member in found:
        if keyword == "class" and member.is_data and member.access != "private":
            yield member.offset, f"{name} has data that is not private", "functions"
        if keyword == "struct" and not member.is_data:
            yield member.offset, f"struct {name} has a function", "a class, with private data"
        if question := QUESTION.search(member.text):
            yield member.offset, f"{question[1]} asks and is not const", "a question or a deed"


def check(tree):
    found = []
    for path in tree.cpp_files:
        if parent(path) not in ROOMS:
            continue
        cpp = tree.cpp(path)
        for match in TYPE.finditer(cpp.code):
            for offset, what, wanted in judge(cpp, match):
                found.append(Finding(path, cpp.line(offset), what, wanted))
    return found
