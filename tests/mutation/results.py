"""What became of each mutant, kept as it is found out: a hunt that was stopped goes on."""

import collections
import json
import pathlib


class Results:
    """One line of JSON for each mutant, by its number. The numbers are an overlay's."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.of = {row["number"]: row for row in map(json.loads, lines)}

    def add(self, number, **what):
        row = {"number": number, **self.of.get(number, {}), **what}
        self.of[number] = row
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def fate(row):
    """hunt, tests, equivalent or open; "" where it was not tried by all of them."""
    if row.get("oracle"):
        return "hunt"
    if row.get("test"):
        return "tests"
    if row.get("equivalent"):
        return "equivalent"
    return "open" if "oracle" in row and "test" in row else ""


def median(values):
    return sorted(values)[len(values) // 2] if values else "-"


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(names, dropped, results):
    """A line for each file, and one for all, of what was hunted. What lives is told apart by
    whether some drawn program has other operations."""
    rows = ["| file | mutants | run by a drawn program | killed by the hunt | after programs "
            "(median, most) | by unit tests alone | equivalent | live, same operations | live, "
            "other operations | killed by the hunt, of those run |",
            "|---|---|---|---|---|---|---|---|---|---|"]
    files = collections.defaultdict(list)
    for number, (file, _, _) in names.items():
        if number not in dropped and "oracle" in results.of.get(number, {}):
            files[file.removeprefix("shared/")].append(results.of[number])
    total = []
    for file, found in sorted(files.items()):
        rows.append(line(f"`{file}`", found))
        total += found
    return rows + [line("all of these", total)]


def line(name, found):
    fates = collections.Counter(map(fate, found))
    run = [row for row in found if row["tried"]]
    programs = [row["tried"] for row in run if row["oracle"]]
    live = [row for row in run if fate(row) in ("open", "")]
    other = sum(1 for row in live if row["differs"] is not None)
    return (f"| {name} | {len(found)} | {len(run)} | {len(programs)} | "
            f"{median(programs)}, {max(programs, default='-')} | {fates['tests']} | "
            f"{fates['equivalent']} | {len(live) - other} | {other} | "
            f"{percent(len(programs), len(run))} |")


def oracles(results):
    """Which oracle was the first to object, of all that the hunt killed."""
    return collections.Counter(row["oracle"] for row in results.of.values() if row.get("oracle"))
