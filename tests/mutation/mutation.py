"""Mutants of the core, made from its syntax tree, hunted.

    mutation.py [FILE...] [--folder BUILD] [--programs N] [--most N] [--seed S] [--sample N]
                [--seconds S] [--least PERCENT] [--jobs N] [--again] [--no-tests] [--table]
    mutation.py [FILE...] --world cpu|cuda --torch FOLDER [--sample N] ...
    mutation.py [FILE...] --world threads

For each file of shared (all where none is named): builds all its mutants in one program; tries each
on the first so many of the drawn programs that come by its place, and those that live by the unit
tests (hunters.py). Of what lives still it asks the compiler whether it is the same program. What
was found out is kept in the folder, and a hunt that was stopped goes on.
What argued/ says to be the core itself (argued.py) may not be killed.
--world: another world, by its tests: the CPU's device, or the CUDA device on the virtual GPU, both
with LibTorch's autograd. FOLDER is that of the package torch. threads: guards that are not there,
under ThreadSanitizer, by the tests that have threads.
--sample: so many mutants, drawn by the seed. --again: also what drawn programs did not kill before.
--least: exit code 1 where drawn programs kill a smaller share, in percent, of those that they come
by. --table: no hunt; the table of what is known.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import sys
import time

import argued
import equivalents
import hunters
import overlay
import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/mutation"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--world", choices=hunters.WORLDS, default="sim")
    parser.add_argument("--torch", help="the folder of the package torch")
    parser.add_argument("--programs", type=int, default=50000)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--no-tests", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if (options.world in ("cpu", "cuda")) != (options.torch is not None):
        parser.error("--torch goes with --world cpu and cuda, and these with it")
    if options.torch and not (pathlib.Path(options.torch) / "share/cmake").is_dir():
        parser.error(f"--torch {options.torch}: expected the folder of the package torch")
    return options


def say(text):
    print(time.strftime("%X"), text, file=sys.stderr, flush=True)


def files():
    return [str(file.relative_to(ROOT)) for file in sorted(ROOT.glob("shared/**/*.h"))]


def built(options):
    """All of shared's mutants in one program, whatever is hunted: the numbers are the same."""
    made = overlay.Overlay(ROOT, options.folder, files(), options.torch,
                           options.world == "threads")
    if options.table:
        return made
    say(f"{len(made.names) - len(made.unasked)} mutants")
    made.make()
    tests = list(hunters.TESTS[options.world].values())
    made.compile([overlay.HUNT] if options.world == "sim" else tests, say)
    say(f"{len(made.dropped - made.unasked)} do not compile")
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


def each(numbers, attempt, jobs, clock):
    """(number, what came of it) in their order, several at a time; ends when it is late."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tried = pool.map(lambda n: None if clock.late() else attempt(n), numbers)
        for count, (number, found) in enumerate(zip(numbers, tried)):
            if found is None:
                return
            yield number, found
            if count % 100 == 0:
                say(f"{count} of {len(numbers)}")


def hunt(options, made, numbers, known, clock):
    """By drawn programs. What lives is tried again where there are more programs than before."""
    hunt_of = hunters.Hunt(made.build, options.seed, options.programs, options.most)
    reached = [n for n in numbers if n in hunt_of.reached]
    say(f"{len(reached)} of {len(numbers)} are come by in {options.programs} programs")
    alive = {n: known.of.get(n, {}).get("tried", -1) for n in numbers
             if not known.of.get(n, {}).get("oracle")}
    left = [n for n, tried in alive.items()
            if options.again or tried < len(hunt_of.reached.get(n, []))]
    for number, found in each(left, hunt_of.kill, options.jobs, clock):
        file, line, kind = made.names[number]
        known.add(number, file=file, line=line, kind=kind, **found)


def test(options, made, numbers, known, clock):
    living = [n for n in numbers if n in known.of and not known.of[n]["oracle"] and
              not known.of[n].get("test")]
    if not living or clock.late():
        return
    made.compile(list(hunters.TESTS["sim"].values()), say)
    digest = hunters.digest(made.build, "sim")
    living = [n for n in living if known.of[n].get("tests") != digest]
    if not living:
        return
    tests = hunters.Tests(made.build, "sim")
    say(f"{len(living)} live; {len(tests.reached)} unit tests")

    def attempt(number):
        return tests.kill(number, made.names[number][0].split("/")[1]) or ""

    for number, killer in each(living, attempt, options.jobs, clock):
        known.add(number, test=killer, tests=digest)


def compare(options, made, numbers, known, clock):
    """Whether what lives is the same program."""
    living = [n for n in numbers if known.fate(n) == "open" and "equivalent" not in known.of[n]]
    if not living or clock.late():
        return
    for number, same in equivalents.equivalents(made, living, options.jobs, say).items():
        known.add(number, equivalent="the same object code" if same else "")


def test_really(options, made, numbers, known, clock):
    """By the tests of another world; whether these kill enough of what they come by."""
    tests, world = hunters.Tests(made.build, options.world), options.world
    say(f"{len(tests.reached)} tests")

    def attempt(number):
        killer = tests.kill(number, made.names[number][0].split("/")[1])
        return {"come_by": killer is not None, "killer": killer or ""}

    left = [n for n in numbers if world not in known.of.get(n, {})]
    for number, found in each(left, attempt, options.jobs, clock):
        file, line, kind = made.names[number]
        known.add(number, file=file, line=line, kind=kind, **{world: found})
    rows = [known.of[n] for n in numbers if world in known.of.get(n, {})]
    reached = [row for row in rows if row[world]["come_by"]]
    killed = [row for row in reached if row[world]["killer"]]
    print(f"{len(rows)} mutants in the world {world}; its tests come by {len(reached)} and kill "
          f"{results.percent(len(killed), len(reached))} of these")
    for row in reached:
        if not row[world]["killer"]:
            fate = {"hunt": "drawn programs kill it", "tests": "the simulator's unit tests kill it"}
            print(f"lives: {row['file']}:{row['line']} {row['kind']} (mutant {row['number']}) "
                  f"{fate.get(known.fate(row['number']), '')}")
    return 100 * len(killed) >= options.least * len(reached)


def report(numbers, known, least):
    """Whether drawn programs kill enough of what they come by, and nothing argues against what
    kills."""
    rows = [known.of[n] for n in numbers if n in known.of]
    fates = [known.fate(row["number"]) for row in rows]
    reached = [row for row in rows if row["tried"]]
    killed = sum(1 for row in reached if row["oracle"])
    print(f"{len(rows)} mutants hunted: {fates.count('hunt')} killed by drawn programs, "
          f"{fates.count('tests')} by unit tests alone, {fates.count('equivalent')} are the core "
          f"itself, {fates.count('open')} live, "
          f"{fates.count('')} were not tried by unit tests; of the {len(reached)} that "
          f"drawn programs come by these kill "
          f"{results.percent(killed, len(reached))}")
    for row, fate in zip(rows, fates):
        if fate == "open":
            does = "the same" if row["differs"] is None else f"otherwise in {row['differs']}"
            print(f"lives: {row['file']}:{row['line']} {row['kind']} (mutant {row['number']}, does "
                  f"{does})")
    wrong = known.wrongly_argued()
    for number in wrong:
        print(f"argued to be the core, and killed: {known.of[number]}")
    return not wrong and 100 * killed >= least * len(reached)


def main():
    options = arguments()
    made = built(options)
    why, lost = argued.arguments(made)
    if lost:
        print("no mutant is so written:", *lost, sep="\n", file=sys.stderr)
        return 1
    known = results.Results(options.folder / f"results-{made.digest()}.jsonl", why)
    if options.table and options.world != "sim":
        print("\n".join(results.world_table(made.names, known, options.world)))
        print(dict(results.killers(known, options.world).most_common()))
        return 0
    if options.table:
        print("\n".join(results.table(made.names, made.dropped, known)))
        print(dict(results.oracles(known).most_common()))
        return 0
    numbers, clock = chosen(options, made), Clock(options.seconds)
    if options.world != "sim":
        return 0 if test_really(options, made, numbers, known, clock) else 1
    hunt(options, made, numbers, known, clock)
    if not options.no_tests:
        test(options, made, numbers, known, clock)
        compare(options, made, numbers, known, clock)
    return 0 if report(numbers, known, options.least) else 1


if __name__ == "__main__":
    sys.exit(main())
