"""What comments and documents refer to: paths that exist, and no lost citations.

A citation is a code of a list that is not in the tree: `A` and a number before a colon at the start
of a comment, or alone in parentheses. Who reads it has nowhere to look it up.
"""

import fnmatch
import itertools
import re

from comments import comment_lines
from pages import LINK, is_page
from tree import Finding, suffix

BRACES = re.compile(r"\{([^{}]*)\}")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z]{2,}(?![a-z])")  # cli/NAME.cpp

CODE = r"[A-Z]{1,2}\d{1,2}"
CITED_FIRST = re.compile(rf"\s*({CODE}(?:, {CODE})*): ")
CITED_ASIDE = re.compile(rf"(?<!\w)\((?:(?:hazard|rule|finding|case) )?({CODE}(?:, {CODE})*)\)")
# What looks like a code and is a name: of types and, alone in parentheses, of cards and caches.
TYPES = re.compile(r"(?:BF|FP|TF|[UIF])(?:4|8|16|32|64)")
NAMES = re.compile(rf"{TYPES.pattern}|SM\d\d|GB10|MI\d\d|[TPL]4|L40|A(?:2|10|16|30|40)|L[123]")


def lost_citation(text):
    """The codes that a comment line cites, or None."""
    match = CITED_FIRST.match(text)
    if match and not all(map(TYPES.fullmatch, match[1].split(", "))):
        return match[1]
    for match in CITED_ASIDE.finditer(text):
        said = not match[0].startswith(f"({match[1]}")  # what it is a code of
        if said or not all(map(NAMES.fullmatch, match[1].split(", "))):
            return match[1]
    return None


def spelled_out(path):
    """The paths that a{b,c}d stands for."""
    match = BRACES.search(path)
    if not match:
        return [path]
    before, after = path[: match.start()], path[match.end() :]
    choices = [spelled_out(before + choice + after) for choice in match[1].split(",")]
    return list(itertools.chain(*choices))


class Paths:
    """What a path in a text may stand for, in this tree."""

    def __init__(self, tree):
        self.all = tree.file_set | tree.folders
        self.all |= {path.rpartition(".")[0] for path in tree.files if suffix(path)}
        for users in ("real/include/", "verify/include/", "python/"):  # who write ferry/NAME
            self.all |= {path.removeprefix(users) for path in self.all}
        folders = sorted({path.split("/")[0] for path in self.all if "/" in path} | {"docs"})
        names = "|".join(re.escape(name) for name in folders if not name.startswith("."))
        self.token = re.compile(rf"(?<![\w./:$>~*\\{{}}-])(?:{names})/[\w./*{{}},-]*")

    def exist(self, path):
        if path not in self.all and suffix(path) != ".md":
            path = PLACEHOLDER.sub("*", path)
        if "*" in path:
            return any(fnmatch.fnmatchcase(known, path) for known in self.all)
        return path in self.all

    def unknown(self, text):
        """The paths in the text that name nothing."""
        for match in self.token.finditer(text):
            token = match[0] if BRACES.search(match[0]) else re.split("[{},]", match[0])[0]
            token = token.rstrip(".,-/")
            if not all(map(self.exist, spelled_out(token))):
                yield token


def check(tree):
    found, paths = [], Paths(tree)
    for path in tree.files:
        lines = comment_lines(tree, path)
        if is_page(path):  # its links are pages.py's
            lines = [(n, LINK.sub("", text)) for n, text in enumerate(tree.lines(path), 1)]
        for number, text in lines:
            for unknown in paths.unknown(text):
                found.append(Finding(path, number, f"names {unknown}", "a path that exists"))
            codes = None if is_page(path) else lost_citation(text)
            if codes:
                found.append(Finding(path, number, f"cites {codes}", "words, not a list's number"))
    return found
