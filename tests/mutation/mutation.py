"""Mutants of the core, made from its syntax tree, hunted.

    mutation.py [FILE...] [--folder BUILD] [--programs N] [--seed S] [--sample N] [--seconds S]
                [--least PERCENT] [--no-tests] [--table]

For each file of shared (all where none is named): builds all its mutants in one program, tries each
that a drawn program comes by on so many drawn programs, and those that live by the unit tests of
the core's rooms. What was found out is kept in the folder, and a hunt that was stopped goes on.
--sample: so many mutants, drawn by the seed. --least: exit code 1 where drawn programs kill a
smaller share, in percent, of those that they come by. --table: no hunt; the table of what is known.
"""

import argparse
import pathlib
import random
import sys
import time

import hunters
import overlay
import results

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/mutation")
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--no-tests", action="store_true")
    parser.add_argument("--table", action="store_true")
    return parser.parse_args()


def say(text):
    print(time.strftime("%X"), text, file=sys.stderr, flush=True)


def built(options):
    """All of shared's mutants in one program, whatever is hunted: the numbers are the same."""
    files = [str(f.relative_to(ROOT)) for f in sorted(ROOT.glob("shared/**/*.h"))]
    made = overlay.Overlay(ROOT, options.folder, files)
    if options.table:
        return made
    say(f"{len(made.names)} mutants")
    made.make()
    made.compile([overlay.HUNT], say)
    say(f"{len(made.dropped)} do not compile")
    return made


def chosen(options, made):
    """The numbers to be hunted."""
    alive = [n for n in sorted(made.names) if n not in made.dropped]
    if options.files:
        alive = [n for n in alive if made.names[n][0] in options.files]
    if options.sample:
        alive = sorted(random.Random(options.seed).sample(alive, min(options.sample, len(alive))))
    return alive


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds if seconds else None

    def late(self):
        return self.end is not None and time.monotonic() > self.end


def hunt(options, made, numbers, known, clock):
    """By drawn programs. What lives is tried again where there are more programs than before."""
    hunt_of = hunters.Hunt(made.build, options.seed, options.programs)
    reached = hunt_of.reached.intersection(numbers)
    say(f"{len(reached)} of {len(numbers)} are come by in {options.programs} programs")
    for count, number in enumerate(numbers):
        before = known.of.get(number, {})
        if before.get("oracle") or before.get("hunted", 0) >= options.programs or clock.late():
            continue
        killed = hunt_of.kill(number)
        what = {"oracle": "", "programs": 0, "words": ""}
        if killed:
            what = dict(zip(what, killed))
        file, line, kind = made.names[number]
        known.add(number, file=file, line=line, kind=kind, reached=number in reached,
                  hunted=options.programs, **what)
        if count % 100 == 0:
            say(f"{count} of {len(numbers)} hunted")


def test(made, numbers, known, clock):
    living = [n for n in numbers if n in known.of and not known.of[n]["oracle"]]
    if all("test" in known.of[n] for n in living) or clock.late():
        return
    made.compile([f"test_shared_{room}" for room in hunters.ROOMS], say)
    tests = hunters.Tests(made.build)
    say(f"{len(living)} live; {len(tests.reached)} unit tests")
    for number in living:
        if "test" not in known.of[number] and not clock.late():
            room = made.names[number][0].split("/")[1]
            known.add(number, test=tests.kill(number, room) or "")


def report(numbers, known, least):
    """Whether drawn programs kill enough of what they come by."""
    rows = [known.of[n] for n in numbers if n in known.of]
    fates = [results.fate(row) for row in rows]
    reached = [row for row in rows if row["reached"]]
    killed = sum(1 for row in reached if row["oracle"])
    print(f"{len(rows)} mutants hunted: {fates.count('hunt')} killed by drawn programs, "
          f"{fates.count('tests')} by unit tests alone, {fates.count('open')} live, "
          f"{fates.count('')} were not tried by unit tests; of the {len(reached)} that "
          f"drawn programs come by these kill "
          f"{results.percent(killed, len(reached))}")
    for row in rows:
        if results.fate(row) == "open":
            print(f"lives: {row['file']}:{row['line']} {row['kind']} (mutant {row['number']})")
    return 100 * killed >= least * len(reached)


def main():
    options = arguments()
    made = built(options)
    known = results.Results(options.folder / f"results-{made.digest()}.jsonl")
    if options.table:
        print("\n".join(results.table(made.names, made.dropped, known)))
        print(dict(results.oracles(known).most_common()))
        return 0
    numbers, clock = chosen(options, made), Clock(options.seconds)
    hunt(options, made, numbers, known, clock)
    if not options.no_tests:
        test(made, numbers, known, clock)
    return 0 if report(numbers, known, options.least) else 1


if __name__ == "__main__":
    sys.exit(main())
