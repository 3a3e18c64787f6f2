"""Markdown pages: the width of their prose, the length of README, and where their links lead.

Tables and examples are as wide as what they show: a fence, or lines indented by four. Of a link
its text counts, and not its target. An anchor is a heading's words, as GitHub makes it of them.
"""

import posixpath
import re

from tree import Finding, parent, suffix

COLUMNS_MAX = 100
README_WORDS_MAX = 1200  # three minutes of reading

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


def long_readme(tree):
    words = 0
    for number, line in enumerate(tree.lines("README.md"), 1):
        before, words = words, words + len(line.split())
        if before <= README_WORDS_MAX < words:
            total = len(tree.text("README.md").split())
            return [Finding("README.md", number, f"{total} words", f"at most {README_WORDS_MAX}")]
    return []


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
    found = long_readme(tree) if "README.md" in tree.file_set else []
    for path in filter(is_page, tree.files):
        found += wide_prose(tree, path)
        found += lost_links(tree, path)
    return found
