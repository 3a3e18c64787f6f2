"""Figures that pages cite from records of results: each stands in the record that is linked.

A page cites a figure by a link whose text is the figure, a number with or without a unit:
`[1.024](../bench/results/planning.md)`. The record must have it as a whole: 1.02 is not in 1.024.
With an anchor, the section must. The row is not compared: a figure that changes, and that another
row of the section has by chance, is not found.
"""

import itertools
import posixpath
import re

from pages import CODE_SPAN, HEADING, anchors, is_page, without_examples
from tree import Finding, name_of, parent

CITED = re.compile(r"\[([^\]]+)\]\((?=[^)\s])([^)\s#]*)(?:#([^)\s]*))?\)")
FIGURE = re.compile(r"[+-]?\d[\d.,]*(?: ?(?:[%×]|[A-Za-zµ][\w/]*))?")


def is_record(path):
    return path.startswith("bench/results/") or name_of(path) == "RESULTS.md"


def cited(tree, path):
    """(line, figure, record, anchor) of each."""
    text = "\n".join(without_examples(tree, path))
    blank = CODE_SPAN.sub(lambda span: re.sub(r"[^\n]", " ", span[0]), text)
    for match in CITED.finditer(blank):
        figure = " ".join(match[1].split())
        record = posixpath.normpath(posixpath.join(parent(path), match[2])) if match[2] else path
        if FIGURE.fullmatch(figure) and is_record(record) and record in tree.file_set:
            yield blank.count("\n", 0, match.start()) + 1, figure, record, match[3]


def level(heading):
    return len(heading) - len(heading.lstrip("#"))


def section(tree, path, anchor):
    """The text below the heading of that anchor; None where there is no such heading."""
    if not anchor:
        return tree.text(path)
    shown = without_examples(tree, path)
    headings = [number for number, line in enumerate(shown) if HEADING.match(line)]
    for number, name in zip(headings, anchors(tree, path)):
        if name == anchor:
            after = itertools.dropwhile(lambda each: each <= number, headings)
            ends = [each for each in after if level(shown[each]) <= level(shown[number])]
            return "\n".join(tree.lines(path)[number : ends[0] if ends else None])
    return None


def stands_in(figure, text):
    return re.search(rf"(?<![\w.,]){re.escape(figure)}(?!\w|[.,]\d)", " ".join(text.split()))


def check(tree):
    found = []
    for path in filter(is_page, tree.files):
        for line, figure, record, anchor in cited(tree, path):
            text = section(tree, record, anchor)
            if text is not None and not stands_in(figure, text):
                where = f"{record}#{anchor}" if anchor else record
                found.append(Finding(path, line, f"cites {figure}", f"a figure of {where}"))
    return found
