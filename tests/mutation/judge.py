"""Helps with surviving mutants: shows them, tries a room's unit tests on them, records reasons.

    judge.py lives [ROOM|FILE...]     lists mutants that nothing killed, or that are not tried yet
    judge.py show NUMBER...           prints them, the lines around them, and their results
    judge.py run ROOM [FILTER]        builds the room's unit tests and runs them without a mutant
    judge.py try ROOM [NUMBER...]     builds the tests and says which one kills each mutant; without
                                      numbers, tries all survivors of the room
    judge.py argue NUMBER WHY         records in argued/ROOM.jsonl why the mutant is equivalent
It uses the folder of mutation.py (--folder) and the mutants' numbers in this source. It keeps no
results except reasons: mutation.py tries survivors again. Only one build runs at a time.
"""

import argparse
import fcntl
import json
import os
import pathlib
import subprocess
import sys

import argued
import hunters
import mutation
import overlay
import results

AROUND = 5


def arguments():
    about, _, commands = __doc__.partition("\n")
    parser = argparse.ArgumentParser(description=about, epilog=commands,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=mutation.FOLDER)
    rooms = sorted(hunters.TESTS["sim"])
    command = parser.add_subparsers(dest="command", required=True)
    command.add_parser("lives").add_argument("of", nargs="*", metavar="ROOM|FILE")
    command.add_parser("show").add_argument("numbers", nargs="+", type=int, metavar="NUMBER")
    run = command.add_parser("run")
    run.add_argument("room", choices=rooms)
    run.add_argument("filter", nargs="?", default="*")
    attempt = command.add_parser("try")
    attempt.add_argument("room", choices=rooms)
    attempt.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
    argue = command.add_parser("argue")
    argue.add_argument("numbers", nargs=1, type=int, metavar="NUMBER")
    argue.add_argument("why")
    return parser.parse_args()


def room_of(file):
    return file.split("/")[1]


class Judged:
    """The mutants of a source tree, and their results."""

    def __init__(self, folder):
        self.folder = folder
        self.made = overlay.Overlay(mutation.ROOT, folder, mutation.files(), None)
        self.named = argued.named(self.made)
        why, _ = argued.arguments(self.made)
        self.known = results.Results(folder / f"results-{self.made.digest()}.jsonl", why)

    def living(self, of):
        """Yields the survivors of these rooms or files, or of all."""
        for number in sorted(self.known.of.keys() - self.made.dropped):
            file = self.named[number][0]
            if self.known.fate(number) in ("open", "") and (
                    not of or file in of or room_of(file) in of):
                yield number

    def words(self, number):
        file, kind, was, reads, nth = self.named[number]
        alike = f" (number {nth} of these)" if nth > 1 else ""
        return f"{number} {file}:{self.made.names[number][1]} [{kind}] `{was}` -> `{reads}`{alike}"

    def shown(self, number):
        file, at, _ = self.made.names[number]
        lines = enumerate((mutation.ROOT / file).read_text().splitlines(), start=1)
        around = [f"{'>' if n == at else ' '} {n} {line}" for n, line in lines
                  if abs(n - at) <= AROUND]
        return "\n".join([self.words(number), str(self.known.of.get(number, {})), *around])

    def build(self, room):
        """Builds the tests. Only if that fails, finds the mutants that do not compile with them."""
        program = hunters.TESTS["sim"][room]
        with (self.folder / "building").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            self.made.make()
            command = ["ninja", "-C", str(self.made.build), "-j2", program]
            if overlay.run(command, check=False).returncode:
                self.made.compile([program], mutation.say)
        return hunters.find(self.made.build, program)


def run(judged, options):
    command = [str(judged.build(options.room)), f"--gtest_filter={options.filter}",
               "--gtest_brief=1"]
    return subprocess.run(command, env=dict(os.environ, FERRY_MUTANT="0"), check=False).returncode


def attempt(judged, options):
    numbers = options.numbers or list(judged.living([options.room]))
    judged.build(options.room)
    tests = hunters.Tests(judged.made.build, "sim", [options.room])
    for number in numbers:
        killer = tests.kill(number, options.room)
        fate = "not executed" if killer is None else f"killed: {killer}" if killer else "SURVIVES"
        print(fate, judged.words(number), flush=True)


def argue(name, why, folder):
    """Records why the mutant with this name is equivalent, instead of an earlier reason."""
    path = folder / f"{room_of(name[0])}.jsonl"
    entries = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    entries = [entry for entry in entries if tuple(entry[key] for key in argued.KEYS) != name]
    entries.append(dict(zip(argued.KEYS, name), why=why))
    entries.sort(key=lambda entry: [str(entry[key]) for key in argued.KEYS])
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def main():
    options = arguments()
    judged = Judged(options.folder)
    places = {*hunters.TESTS["sim"], *mutation.files()}
    for name in set(getattr(options, "of", [])) - places:
        sys.exit(f"'{name}': expected a room or a file of shared")
    unknown = set(getattr(options, "numbers", [])) - judged.named.keys()
    if unknown:
        sys.exit(f"no mutant has the number {min(unknown)}")
    if options.command == "lives":
        if not judged.known.of:
            sys.exit(f"{options.folder} has no results for this source: run mutation.py first")
        for number in judged.living(options.of):
            row = judged.known.of[number]
            hint = "" if row["differs"] is None else "(other operations)"
            print(judged.words(number), hint if row["tried"] else "(no random program runs it)")
    elif options.command == "show":
        print("\n".join(map(judged.shown, options.numbers)))
    elif options.command == "argue":
        argue(judged.named[options.numbers[0]], options.why, argued.HERE)
    else:
        return {"run": run, "try": attempt}[options.command](judged, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
