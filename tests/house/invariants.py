"""Assertions of the core are seen to fail (shared/seam/invariant.h).

Each call of `invariant` in shared/ has words of its own, and a test in tests/shared in which it
fails with these words: EXPECT_DEATH(…, words). So an assertion that nothing can break, or that has
gone from where it was tested, is found.
"""

import re

from tree import Finding

CALL = re.compile(r"(?<![\w.:])(?:invariant|EXPECT_DEATH)\(")
STRINGS = re.compile(r'"((?:\\.|[^"\\\n])*)"(?:\s*"((?:\\.|[^"\\\n])*)")*')
PART = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def calls(tree, path):
    """(line, words) of each call in a file: its last run of string literals."""
    cpp, text = tree.cpp(path), tree.text(path)
    for match in CALL.finditer(cpp.code):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(cpp.code[end], 0)
            end += 1
        runs = list(STRINGS.finditer(text[match.end() : end]))
        if runs:
            yield cpp.line(match.start()), "".join(PART.findall(runs[-1][0]))


def of_folder(tree, name):
    """{words: [(path, line)]} of all files in a folder."""
    found = {}
    for path in tree.cpp_files:
        if path.startswith(f"{name}/"):
            for line, words in calls(tree, path):
                found.setdefault(words, []).append((path, line))
    return found


def check(tree):
    found = []
    seen = of_folder(tree, "tests/shared")
    for words, places in of_folder(tree, "shared").items():
        for path, line in places[1:]:
            found.append(Finding(path, line, "an assertion in another's words", words))
        if words not in seen:
            path, line = places[0]
            why = "EXPECT_DEATH with its words in tests/shared"
            found.append(Finding(path, line, f"nothing shows that it fails: {words}", why))
    return found
