"""The result of each mutant, saved at once, so that a run that was stopped can continue."""

import collections
import json
import pathlib


class Results:
    """One line of JSON for each result, by the mutant's number in the overlay. `argued` has the
    mutants that are argued to be equivalent, by number (argued.py)."""

    def __init__(self, path, argued):
        self.path, self.argued = pathlib.Path(path), argued
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.of = {row["number"]: row for row in map(json.loads, lines)}

    def add(self, number, **what):
        row = {"number": number, **self.of.get(number, {}), **what}
        self.of[number] = row
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def fate(self, number):
        """Returns hunt, tests, equivalent or open; "" if it was not tried on everything yet."""
        row = self.of.get(number, {})
        if row.get("oracle"):
            return "hunt"
        if row.get("test"):
            return "tests"
        if number in self.argued or row.get("equivalent"):
            return "equivalent"
        return "open" if "oracle" in row and "test" in row else ""

    def wrongly_argued(self):
        return [n for n in self.argued if self.fate(n) in ("hunt", "tests")]


def median(values):
    return sorted(values)[len(values) // 2] if values else "-"


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(names, dropped, results):
    """Returns a line for each file, and one for all, about the mutants that were tried."""
    rows = ["| file | mutants | executed by random programs or mutants made by hand | killed by "
            "random programs | after programs (median, most) | killed by unit tests alone | "
            "equivalent | open | killed by random programs, of those executed and not equivalent | "
            "killed, of all that are not equivalent |",
            "|---|---|---|---|---|---|---|---|---|---|"]
    files = collections.defaultdict(list)
    for number, (file, _, _) in names.items():
        if number not in dropped and "oracle" in results.of.get(number, {}):
            files[file.removeprefix("shared/")].append(number)
    total = []
    for file, found in sorted(files.items()):
        rows.append(line(f"`{file}`", found, results))
        total += found
    return rows + [line("all of these", total, results)]


def line(name, numbers, results):
    fates = collections.Counter(map(results.fate, numbers))
    found = [results.of[n] for n in numbers]
    run = [row for row in found if row["tried"]]
    programs = [row["tried"] for row in run if row["oracle"]]
    same = sum(1 for row in run if results.fate(row["number"]) == "equivalent")
    others = len(found) - fates["equivalent"]
    return (f"| {name} | {len(found)} | {len(run)} | {len(programs)} | "
            f"{median(programs)}, {max(programs, default='-')} | {fates['tests']} | "
            f"{fates['equivalent']} | {fates['open'] + fates['']} | "
            f"{percent(len(programs), len(run) - same)} | "
            f"{percent(fates['hunt'] + fates['tests'], others)} |")


def oracles(results):
    """Counts which oracle objected first, for the mutants that random programs killed."""
    return collections.Counter(row["oracle"] for row in results.of.values() if row.get("oracle"))


def world_table(names, results, world):
    """Returns a line for each file, and one for all, about the tests of another world."""
    files = collections.defaultdict(list)
    for number, row in results.of.items():
        if world in row:
            files[names[number][0].removeprefix("shared/")].append(row[world])
    rows = ["| file | tried | executed | killed | by a crash or a hang | survive |",
            "|---|---|---|---|---|---|"]
    everything = [each for found in files.values() for each in found]
    for file, found in [*sorted((f"`{file}`", found) for file, found in files.items()),
                        ("all of these", everything)]:
        killers = [each["killer"] for each in found if each["killer"]]
        reached = sum(each["come_by"] for each in found)
        rows.append(f"| {file} | {len(found)} | {reached} | {len(killers)} | "
                    f"{sum(map(ends, killers))} | {reached - len(killers)} |")
    return rows


def ends(killer):
    return killer.endswith((": crash", ": hang"))


def killers(results, world):
    """Counts the mutants that each suite of tests killed."""
    killed = [row[world]["killer"] for row in results.of.values() if world in row]
    return collections.Counter(each if ends(each) else each.partition(".")[0]
                               for each in killed if each)
