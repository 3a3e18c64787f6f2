"""Bad trees, each with one fault that must be found, and found where it is; and one good tree.

They are judged before the tree is, as it is: in a folder of their own, each with a small table of
rooms. A check that has gone blind misses its fault here, one that sees ghosts finds them here.
"""

import pathlib
import tempfile

import bad_rooms
import bad_texts
import good_tree

STYLE = "BasedOnStyle: Google\nColumnLimit: 100\nReflowComments: false\n"


def write(root, files):
    for path, text in {".clang-format": STYLE, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def differences(judge, case, formatted):
    """What was missed in the case's tree, and what was found that is not there."""
    with tempfile.TemporaryDirectory() as folder:
        write(pathlib.Path(folder), case.files)
        _, _, findings = judge(folder, formatted and case.formatted)
    found = {f"{finding.path}:{finding.line}": finding for finding in findings}
    for place in sorted(set(case.expected) - set(found)):
        yield f"{case.name}: missed at {place}"
    for place in sorted(set(found) - set(case.expected)):
        yield f"{case.name}: false alarm: {found[place]}"
    if len(findings) != len(found):
        yield f"{case.name}: found more than once: {[str(finding) for finding in findings]}"


def self_test(judge, formatted):
    """What the checks got wrong, nothing where they are as they should be."""
    cases = [*bad_rooms.CASES, *bad_texts.CASES, good_tree.CASE]
    if formatted:
        cases.append(bad_texts.UNFORMATTED)
    return [line for case in cases for line in differences(judge, case, formatted)]
