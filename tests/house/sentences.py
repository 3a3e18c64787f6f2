"""Comments of the product are sentences: blocks that begin as a riddle does are few.

A block that begins with "Of", "What", "Whether", "Whose", "Who", "None:", "By", "To", "Where" or
"But" is most often no sentence ("Of equals the one that needs least"). It counts unless it begins
as sentences do: "By default", or "To find …," with a main clause after the comma.
"""

import re

from comments import comment_lines
from tree import CPP, Finding, suffix, top

FEW = 50
TESTED = ("tests", "bench", "examples", "docs")
FRAGMENT = re.compile(r"(?:Of|What|Whether|Whose|Who|None:|By|To|Where|But)\b")
SENTENCE = re.compile(r"By default\b|(?:To|Where|What) [^.:;]+, \w|"
                      r"What [^.:;,]+ (?:is|are|belongs?)\b")


def blocks(tree, path):
    """(line, text) of each comment that stands on lines of its own."""
    start, text, before = 0, [], 0
    own = {number for number, line in enumerate(tree.lines(path), 1)
           if line.strip().startswith("//")}
    for number, line in comment_lines(tree, path):
        if number not in own:
            continue
        if number != before + 1 and text:
            yield start, " ".join(text)
            text = []
        if not text:
            start = number
        text.append(line.strip())
        before = number
    if text:
        yield start, " ".join(text)


def fragments(tree):
    for path in tree.files:
        if suffix(path) in CPP and top(path) not in TESTED:
            for line, text in blocks(tree, path):
                if FRAGMENT.match(text) and not SENTENCE.match(text):
                    yield path, line, text


def check(tree):
    found = list(fragments(tree))
    if len(found) > FEW:
        for path, line, text in found:
            yield Finding(path, line, f"one of {len(found)} comments that are no sentences: "
                                      f"{text[:40]!r}", f"at most {FEW}")
