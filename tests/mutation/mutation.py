"""Makes mutants of the core from its syntax tree, and tries to kill each.

    mutation.py [FILE...] [--folder BUILD] [--programs N] [--most N] [--seed S] [--sample N]
                [--seconds S] [--least PERCENT] [--jobs N] [--again] [--no-tests] [--table]
    mutation.py [FILE...] --world cpu|cuda --torch FOLDER [--sample N] ...
    mutation.py [FILE...] --world threads

Takes the mutants of the named files of shared, or of all. All mutants are built into one program.
Each is tried on the first --most random programs that execute it, and survivors on the unit tests
(hunters.py). For the rest, the compiler says if their object code is the core's (equivalents.py).
Results are kept in the folder, so a run that was stopped continues. A mutant that argued/ calls
equivalent (argued.py) must not be killed.

--world   uses the tests of another world: of the CPU device, or of the CUDA device on the virtual
          GPU, both with LibTorch's autograd (FOLDER is the folder of the package torch); or, with
          threads, removes guards and runs the tests that have threads under ThreadSanitizer
--sample  takes this many random mutants, chosen by the seed
--again   also tries mutants again that random programs did not kill before
--least   exit code 1 if random programs kill less than this percentage of those that they execute
--table   tries nothing, and prints the table of the results
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
    """Builds all mutants of shared into one program, so that their numbers are always the same."""
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
    """The numbers of the mutants to try."""
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
    """Yields (number, result) in order. Tries several at a time, and ends when time is over."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tried = pool.map(lambda n: None if clock.late() else attempt(n), numbers)
        for count, (number, found) in enumerate(zip(numbers, tried)):
            if found is None:
                return
            yield number, found
            if count % 100 == 0:
                say(f"{count} of {len(numbers)}")


def hunt(options, made, numbers, known, clock):
    """Tries random programs. Survivors are tried again if there are more programs than before."""
    hunt_of = hunters.Hunt(made.build, options.seed, options.programs, options.most)
    reached = [n for n in numbers if n in hunt_of.reached]
    say(f"{options.programs} random programs execute {len(reached)} of {len(numbers)} mutants")
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
    say(f"{len(living)} survivors; {len(tests.reached)} unit tests")

    def attempt(number):
        return tests.kill(number, made.names[number][0].split("/")[1]) or ""

    for number, killer in each(living, attempt, options.jobs, clock):
        known.add(number, test=killer, tests=digest)


def compare(options, made, numbers, known, clock):
    """Asks the compiler which survivors are equivalent."""
    living = [n for n in numbers if known.fate(n) == "open" and "equivalent" not in known.of[n]]
    if not living or clock.late():
        return
    for number, same in equivalents.equivalents(made, living, options.jobs, say).items():
        known.add(number, equivalent="the same object code" if same else "")


def test_really(options, made, numbers, known, clock):
    """Tries the tests of another world. Returns whether they kill enough of what they execute."""
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
    print(f"{len(rows)} mutants tried in the world {world}: its tests execute {len(reached)} and "
          f"kill {results.percent(len(killed), len(reached))} of these")
    for row in reached:
        if not row[world]["killer"]:
            fate = {"hunt": "random programs kill it",
                    "tests": "the simulator's unit tests kill it"}
            print(f"survives: {row['file']}:{row['line']} {row['kind']} (mutant {row['number']}) "
                  f"{fate.get(known.fate(row['number']), '')}")
    return 100 * len(killed) >= options.least * len(reached)


def report(numbers, known, least):
    """Prints the results. Returns whether random programs kill enough of what they execute, and no
    mutant is killed that argued/ calls equivalent."""
    rows = [known.of[n] for n in numbers if n in known.of]
    fates = [known.fate(row["number"]) for row in rows]
    reached = [row for row in rows if row["tried"]]
    killed = sum(1 for row in reached if row["oracle"])
    print(f"{len(rows)} mutants tried: {fates.count('hunt')} killed by random programs, "
          f"{fates.count('tests')} by unit tests alone, {fates.count('equivalent')} equivalent, "
          f"{fates.count('open')} survive, {fates.count('')} not tried by unit tests yet; "
          f"random programs execute {len(reached)} and kill "
          f"{results.percent(killed, len(reached))} of these")
    for row, fate in zip(rows, fates):
        if fate == "open":
            does = ("same operations" if row["differs"] is None else
                    f"other operations in program {row['differs']}")
            print(f"survives: {row['file']}:{row['line']} {row['kind']} (mutant {row['number']}, "
                  f"{does})")
    wrong = known.wrongly_argued()
    for number in wrong:
        print(f"argued/ calls it equivalent, but it is killed: {known.of[number]}")
    return not wrong and 100 * killed >= least * len(reached)


def main():
    options = arguments()
    made = built(options)
    why, lost = argued.arguments(made)
    if lost:
        print("these entries of argued/ match no mutant:", *lost, sep="\n", file=sys.stderr)
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
