"""The namespaces, types and functions of a C++ file, from its braces.

Within a function braces are only counted: lambdas and local types belong to it, as a reader sees
them. What macros make is not seen; the branches of #if and #else are read as if each were alone.
"""

import re
import typing

from heads import read_head

MARK = re.compile(r"[{}();]")
CONDITION = re.compile(r"\s*#\s*(if|else|elif|endif)")


class Opening(typing.NamedTuple):
    line: int
    name: str


class Function(typing.NamedTuple):
    line: int
    name: str
    lines: int


class Type(typing.NamedTuple):
    line: int
    name: str
    namespace: str


class Block(typing.NamedTuple):
    """An open brace, and where the scan of what is around it stood."""

    kind: str
    name: str
    begin: int
    outer_head: int
    outer_parens: int


class Scan:
    def __init__(self, cpp):
        self.cpp = cpp
        self.openings, self.functions, self.types = [], [], []
        self.blocks, self.head, self.parens = (), 0, 0
        self.branches = []
        directives = [(offset, CONDITION.match(text)) for offset, text in cpp.directives]
        marks = [(match.start(), match[0]) for match in MARK.finditer(cpp.code)]
        for offset, mark in sorted([(o, m[1]) for o, m in directives if m] + marks):
            self.step(offset, mark)

    def step(self, offset, mark):
        if mark == "{":
            self.open(offset)
        elif mark == "}":
            self.close(offset)
        elif mark == ";":
            self.head = self.head if self.parens else offset + 1
        elif mark in "()":
            self.parens = max(0, self.parens + (1 if mark == "(" else -1))
        else:
            self.branch(offset, mark)

    def branch(self, offset, word):
        """After #else the braces are open that were open at #if."""
        if word == "if":
            self.branches.append((self.blocks, self.parens))
        elif self.branches and word == "endif":
            self.branches.pop()
        elif self.branches:
            self.blocks, self.parens = self.branches[-1]
            self.head = offset

    def open(self, offset):
        outer = self.blocks[-1].kind if self.blocks else "namespace"
        kind, name, begin = "inner", "", offset
        if outer not in ("body", "inner"):
            nested = self.parens > 0 or outer in ("data", "member")
            head = read_head(self.cpp.code[self.head : offset], nested)
            kind, name, begin = head.kind, head.name, self.head + head.begin
            self.note(head, begin)
        self.blocks += (Block(kind, name, begin, self.head, self.parens),)
        self.head, self.parens = offset + 1, 0

    def note(self, head, begin):
        within = [block.name for block in self.blocks]
        only_namespaces = all(block.kind == "namespace" for block in self.blocks)
        line = self.cpp.line(begin)
        if head.kind == "namespace" and not self.blocks:
            self.openings.append(Opening(line, head.name))
        if head.kind == "type" and head.name and only_namespaces and all(within):
            self.types.append(Type(line, head.name, "::".join(within)))

    def close(self, offset):
        if not self.blocks:
            return
        block = self.blocks[-1]
        self.blocks = self.blocks[:-1]
        if block.kind == "body":
            line = self.cpp.line(block.begin)
            lines = self.cpp.line(offset) - line + 1
            self.functions.append(Function(line, block.name, lines))
        goes_on = block.outer_parens > 0 or block.kind == "member"
        self.head = block.outer_head if goes_on else offset + 1
        self.parens = block.outer_parens
