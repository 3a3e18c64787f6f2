"""Markdown pages: the width of their prose, their length, and where their links lead.

Tables and examples are as wide as what they show: a fence, or lines indented by four. Of a link
its text counts, and not its target. An anchor is a heading's words, as GitHub makes it of them.
The words of a page are counted with those of its tables and examples. References and records may
have any length, because nobody reads them from top to bottom.
"""

import posixpath
import re

from tree import Finding, parent, suffix

COLUMNS_MAX = 100
PAGE_WORDS_MAX = 1800
WORDS_MAX = {"README.md": 700, "ARCHITECTURE.md": 3500}
ANY_LENGTH = re.compile(r"(docs/reference|formats|bench/results)/|(.*/)?(RESULTS|CHANGELOG)\.md$")

LINK = re.compile(r"\[[^\]]*\]\((?=[^)\s])([^)\s#]*)(?:#([^)\s]*))?\)")
CODE_SPAN = re.compile(r"`[^`]*`")
FENCE = re.compile(r"\s*```")
HEADING = re.compile(r"#{1,6}\s+(.+)")


def is_page(path):
    return suffix(path) == ".md"


def without_examples(tree, path):
    """The lines of a page, with those of its examples empty."""
    fenced = example = False
    before, lines = "", []
    for line in tree.lines(path):
        fence = bool(FENCE.match(line))
        indented = line.startswith("    ") and (example or not before.strip())
        example = indented or (example and not line.strip())
        shown = not (fenced or fence or indented)
        fenced ^= fence
        lines.append(line if shown else "")
        before = line
    return lines


def wide_prose(tree, path):
    for number, line in enumerate(without_examples(tree, path), 1):
        columns = len(re.sub(r"\]\([^)\s]*\)", "]", line))
        if columns > COLUMNS_MAX and not line.startswith("|"):
            yield Finding(path, number, f"{columns} columns of prose", f"at most {COLUMNS_MAX}")


def long_page(tree, path):
    """The line in which a page exceeds its limit."""
    if ANY_LENGTH.match(path):
        return
    most = WORDS_MAX.get(path, PAGE_WORDS_MAX)
    words = 0
    for number, line in enumerate(tree.lines(path), 1):
        before, words = words, words + len(line.split())
        if before <= most < words:
            total = len(tree.text(path).split())
            yield Finding(path, number, f"{total} words", f"at most {most}")


def anchors(tree, path):
    """What may stand behind a #: of headings that are alike the second one is NAME-1."""
    known = {}
    for line in without_examples(tree, path):
        if heading := HEADING.match(line):
            text = LINK.sub(lambda link: link[0][1:].split("]")[0], heading[1].strip())
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            known[name] = known.get(name, -1) + 1
            yield f"{name}-{known[name]}" if known[name] else name


def links(tree, path):
    """(line, target, anchor) of each; the text of a link may stand on two lines."""
    text = "\n".join(without_examples(tree, path))
    blank = CODE_SPAN.sub(lambda span: re.sub(r"[^\n]", " ", span[0]), text)
    for match in LINK.finditer(blank):
        yield blank.count("\n", 0, match.start()) + 1, match[1], match[2]


def lost_links(tree, path):
    for number, target, anchor in links(tree, path):
        if re.match(r"\w+:", target):
            continue
        page = posixpath.normpath(posixpath.join(parent(path), target)) if target else path
        if page not in tree and page != ".":
            yield Finding(path, number, f"links to {target}", "a file that exists")
        elif anchor and is_page(page) and anchor not in anchors(tree, page):
            yield Finding(path, number, f"links to {target}#{anchor}", f"a heading of {page}")


def check(tree):
    found = []
    for path in filter(is_page, tree.files):
        found += long_page(tree, path)
        found += wide_prose(tree, path)
        found += lost_links(tree, path)
    return found
