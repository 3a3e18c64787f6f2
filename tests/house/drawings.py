"""Drawings in comments, and the signs that a formatter has scrambled one.

Where a line of a drawing is too long, clang-format moves its last words to the front of the next
line, and all of that line to the right. So a vertical stroke ends in the air, or the columns of a
table stand beside those of the other lines. Either is found; and a drawing must be safe from it:
`ReflowComments: false` in .clang-format, or a fence of `// clang-format off` around it.
"""

import itertools
import re

from tree import Finding

STYLE = ".clang-format"
COMMENT = re.compile(r"\s*//")
ART = re.compile(r"[\u2500-\u257f]|--+>|<--+|\+--")
CELL = re.compile(r"(?<=\S)\s{2,}(?=\S)")
FENCE = re.compile(r"\s*clang-format (on|off)\s*$")

STROKES_UP = set("│└┘├┤┴┼╵╯╰")  # they go on in the line above
STROKES_DOWN = set("│┌┐├┤┬┼╷╭╮")
HEADS = set("▲▼")  # the head of a stroke from above or below, or of one that turns there


def comment_runs(tree, path):
    """Runs of lines that are comments and nothing else: [(line, text without its slashes)]."""
    cpp, run = tree.cpp(path), []
    begun = {cpp.line(offset) for offset, _ in cpp.comments}
    for number, text in enumerate(tree.lines(path), 1):
        match = COMMENT.match(text) if number in begun else None
        if match:
            run.append((number, " " * match.end() + text[match.end() :]))
        elif run:
            yield run
            run = []
    if run:
        yield run


def blocks(run):
    """The run's parts between empty lines."""
    for empty, lines in itertools.groupby(run, lambda line: not line[1].strip()):
        if not empty:
            yield list(lines)


def goes_on(block, row, column):
    return 0 <= row < len(block) and bool(block[row][1][column : column + 1].strip())


def loose_stroke(block):
    """The first line with a stroke that goes on into nothing, or None."""
    for row, (number, text) in enumerate(block):
        for column, glyph in enumerate(text):
            above, below = goes_on(block, row - 1, column), goes_on(block, row + 1, column)
            loose = glyph in STROKES_UP and not above or glyph in STROKES_DOWN and not below
            if loose or glyph in HEADS and not above and not below:
                return number, f"a stroke ({glyph}) ends in the air"
    return None


def moved_row(block):
    """The first line whose columns are those of the other lines, all moved by as much, or None."""
    rows = [(number, {match.end() for match in CELL.finditer(text)}) for number, text in block]
    for number, moved in rows:
        others = [columns for other, columns in rows if other != number]
        for table in others if len(moved) >= 3 else ():
            agreed = sum(len(table & columns) >= 3 for columns in others) >= 2  # one is the table
            shifts = {min(moved) - column for column in table}
            beside = any({column - shift for column in moved} <= table for shift in shifts)
            if agreed and beside and not table & moved:
                return number, "its columns stand beside those of the lines around it"
    return None


def unfenced(run, fenced):
    """The first line of a drawing outside a fence, or None; and whether a fence is open then."""
    lines = []
    for number, text in run:
        if fence := FENCE.match(text):
            fenced = fence[1] == "off"
        elif ART.search(text) and not fenced:
            lines.append(number)
    return lines[0] if len(lines) >= 2 else None, fenced


def check_file(tree, path, reflown):
    fenced = False
    for run in comment_runs(tree, path):
        line, fenced = unfenced(run, fenced)
        if line and reflown:
            why = f"ReflowComments: false in {STYLE}, or a fence"
            yield Finding(path, line, "a drawing that the formatter may scramble", why)
        for block in blocks(run):
            for number, what in filter(None, (loose_stroke(block), moved_row(block))):
                yield Finding(path, number, what, "a drawing as it was drawn")


def check(tree):
    style = tree.lines(STYLE) if STYLE in tree.file_set else []
    reflown = "ReflowComments: false" not in style
    return [found for path in tree.cpp_files for found in check_file(tree, path, reflown)]
