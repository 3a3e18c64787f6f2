"""The house in figures: its arrows, and how large its rooms, files and functions are."""

import statistics

import arrows
import mirror
import rooms
import sizes
from tree import top

ROW = "{:28} {:>5} {:>6}   {:>6} {:>7}   {:>9} {:>7} {:>7}"


def show_arrows(counts):
    print("Arrows, with the number of include lines:\n")
    for room in sorted(counts):
        seen = ", ".join(f"{name} {count}" for name, count in sorted(counts[room].items()))
        print(f"{room} -> {seen}")


def median(numbers):
    return int(statistics.median(numbers)) if numbers else 0


def show_sizes(tree):
    print("\n" + ROW.format("", "", "", "files", "", "functions", "", ""))
    heads = ("room", "files", "lines", "median", "largest", "number", "median", "largest")
    print(ROW.format(*heads))
    by_room = {}
    for path in tree.cpp_files:
        by_room.setdefault(rooms.room_of(path), []).append(path)
    for room, paths in [*sorted(by_room.items()), ("all", tree.cpp_files)]:
        files = [len(tree.lines(path)) for path in paths]
        functions = [lines for path in paths for _, _, lines in sizes.functions(tree, path)]
        of_files = len(files), sum(files), median(files), max(files, default=0)
        of_functions = len(functions), median(functions), max(functions, default=0)
        print(ROW.format(room, *of_files, *of_functions))


def show_untested(tree, table):
    print("\nUnits of shared and sim that no test has in its name:\n")
    judged = [room for room in sorted(table) if top(room) in ("shared", "sim")]
    for path in mirror.untested(tree, judged):
        print(path)


def show(tree):
    table, _ = rooms.read_table(tree)
    counts, _ = arrows.arrows(tree, table)
    show_arrows(counts)
    show_sizes(tree)
    show_untested(tree, table)
