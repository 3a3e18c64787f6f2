"""The house as it is meant to be: fails where the tree has left its plan.

    python3 tests/house/house_test.py [ROOT]           judges the tree, its own where none is named
    python3 tests/house/house_test.py --table [ROOT]   prints arrows and sizes, as measured

Includes go by the table of rooms (arrows.py, rooms.py, namespaces.py), files and functions stay
small (sizes.py), drawings whole (drawings.py), references true (documents.py), pages short and
their links whole (pages.py), figures as their records have them (cited.py), tests where their units
are (mirror.py), errors are thrown as a world's (throws.py), assertions are seen to fail
(invariants.py), classes of some rooms have few members and keep their data (parts.py), options are
named by the glossary (words.py), and the code is as the formatter writes it (formatting.py). Before
the tree is judged, bad trees are, each with a fault of its own: what is missed there fails, too.
"""

import concurrent.futures
import pathlib
import sys

import arrows
import bad_trees
import cited
import documents
import drawings
import figures
import formatting
import invariants
import mirror
import namespaces
import pages
import parts
import rooms
import sentences
import sizes
import throws
import words
from tree import Tree


def judge(root, formatted):
    """The tree, its rooms, and what is wrong, in the order of files and lines."""
    tree = Tree(root)
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        reformatted = beside.submit(formatting.check, tree) if formatted else None
        table, found = read(tree)
        found += reformatted.result() if reformatted else []
    return tree, table, sorted(set(found))


def read(tree):
    """The rooms, and what is wrong by what the files say."""
    table, found = rooms.read_table(tree)
    found += rooms.check_table(tree, table)
    found += arrows.check(tree, table)
    found += namespaces.check(tree, table)
    found += sizes.check(tree)
    found += drawings.check(tree)
    found += documents.check(tree)
    found += pages.check(tree)
    found += cited.check(tree)
    found += mirror.check(tree)
    found += throws.check(tree)
    found += invariants.check(tree)
    found += parts.check(tree)
    found += words.check(tree)
    found += sentences.check(tree)
    return table, found


def summary(tree, table, skipped):
    """What was looked at: a run that saw nothing is not to look like one that found nothing."""
    counts, _ = arrows.arrows(tree, table)
    lines = sum(sum(seen.values()) for seen in counts.values())
    functions = sum(len(sizes.functions(tree, path)) for path in tree.files)
    return (
        f"{len(tree.files)} files in {len(table)} rooms, {sum(map(len, counts.values()))} arrows of"
        f" {lines} includes, {functions} functions, {len(list(mirror.tests(tree)))} tests;"
        f" {len(sizes.long_files(tree))} files over {sizes.FEW_FILE_LINES} lines; formatting"
        f" {f'skipped: {skipped}' if skipped else 'judged'}"
    )


def main(arguments):
    named = [argument for argument in arguments if argument != "--table"]
    root = pathlib.Path(named[0] if named else pathlib.Path(__file__).parents[2]).resolve()
    if "--table" in arguments:
        figures.show(Tree(root))
        return 0
    skipped = formatting.skipped()
    missed = bad_trees.self_test(judge, not skipped)
    if missed:
        print("\n".join(f"self-test: {line}" for line in missed))
        return 1
    tree, table, found = judge(root, not skipped)
    for finding in found:
        print(finding)
    faults = f"{len(found)} fault{'s' * (len(found) > 1)} in " if found else ""
    print(f"house: {faults}{summary(tree, table, skipped)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
