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
    """A line for each file, and one for all. Last: of the open ones, those of which some drawn
    program has other operations, and of the killed and open ones, what is killed."""
    rows = ["| file | mutants | come by | killed by the hunt | after programs (median, most) | by "
            "unit tests only | equivalent | open | of those, other operations | killed |",
            "|---|---|---|---|---|---|---|---|---|---|"]
    files = collections.defaultdict(list)
    for number, (file, _, _) in names.items():
        if number not in dropped and fate(results.of.get(number, {})):
            files[file].append(results.of[number])
    total = []
    for file, found in sorted(files.items()):
        rows.append(line(f"`{file}`", found))
        total += found
    return rows + [line("all", total)]


def line(name, found):
    fates = collections.Counter(map(fate, found))
    programs = [row["tried"] for row in found if fate(row) == "hunt"]
    reached = sum(1 for row in found if row["tried"])
    other = sum(1 for row in found if fate(row) == "open" and row["differs"] is not None)
    killed, left = fates["hunt"] + fates["tests"], fates["open"]
    return (f"| {name} | {len(found)} | {reached} | {fates['hunt']} | "
            f"{median(programs)}, {max(programs, default='-')} | {fates['tests']} | "
            f"{fates['equivalent']} | {left} | {other} | {percent(killed, killed + left)} |")


def oracles(results):
    """Which oracle was the first to object, of all that the hunt killed."""
    return collections.Counter(row["oracle"] for row in results.of.values() if row.get("oracle"))
