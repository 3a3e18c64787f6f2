"""Tests the tools with a small source (tiny.h): each kind of mutant is made, those that compile
behave differently, those that do not are found and dropped, and a reason matches its mutant.

    mutation_test.py CXX
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import types

import argued
import hunters
import judge
import overlay
import places
import schemata

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
MAIN = '#include <iostream>\n\n#include "tiny.h"\n\nint main() { std::cout << tiny::text(); }\n'
KINDS = {
    "condition negated", "condition true", "condition false", "early return", "empty result",
    "call deleted", "assignment deleted", "step deleted", "loop deleted", "return deleted",
    "continue deleted", "guard removed", "arguments swapped", "boundary < as <=",
    "boundary > as >=", "comparison == as !=", "logic && as ||", "arithmetic + as -",
    "arithmetic min as max", "arithmetic += as -=", "constant 10", "constant false",
}
# These mutants survive, for this reason. All others print something else, crash, or hang.
LIVE = {
    "nothing checks if the mutex was unlocked": {(16, "assignment deleted"),
                                                    (16, "constant false")},
    "the first value is overwritten": {(17, "constant false"), (51, "constant false")},
    "it is true here": {(34, "condition true")},
    "the smaller one is the same": {(30, "arguments swapped"), (59, "constant 12"),
                                   (59, "arguments swapped")},
    "its arguments are not that large": {(30, "constant 10"), (60, "constant 30")},
    "5 and 4 differ as well, and 4 and 6": {(60, "arguments swapped"), (60, "constant 5")},
}
EQUIVALENT = set().union(*LIVE.values())


def compiled(folder, compiler, text):
    (folder / "tiny.h").write_text(text)
    (folder / "main.cpp").write_text(MAIN)
    command = [compiler, "-std=c++20", "-w", "-fmax-errors=0", f"-I{ROOT}",
               str(folder / "main.cpp"), "-o", str(folder / "tiny")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def output(folder, number):
    try:
        return subprocess.run([str(folder / "tiny")], env={"FERRY_MUTANT": str(number)}, timeout=20,
                              capture_output=True, text=True, check=False).stdout
    except subprocess.TimeoutExpired:
        return "no end"


def numbered(found):
    names = {}
    for place in found:
        for form in place.forms:
            form.number = len(names) + 1
            names[form.number] = (place.line, form.kind)
    return names


def alive(found, dropped):
    kept = [schemata.dataclasses.replace(
        place, forms=[f for f in place.forms if f.number not in dropped]) for place in found]
    return [place for place in kept if place.forms]


def without_errors(folder, compiler, found):
    """Builds until there are no errors. Returns the numbers of the dropped mutants."""
    dropped = set()
    for _ in range(8):
        rendered = schemata.render((HERE / "tiny.h").read_bytes(), alive(found, dropped),
                                   overlay.CHOSEN)
        done = compiled(folder, compiler, rendered.text)
        if done.returncode == 0:
            return dropped
        blamed = set()
        for line, column in re.findall(r"tiny\.h:(\d+):(\d+): error", done.stderr):
            blamed.update(rendered.blamed(int(line), int(column)))
        assert blamed - dropped, done.stderr
        dropped |= blamed
    raise AssertionError("there are still errors")


def check_arguments(found):
    """Each mutant has a unique name, an entry with another name is out of date, and a later reason
    replaces an earlier one."""
    made = types.SimpleNamespace(root=ROOT, places={"tests/mutation/tiny.h": found})
    names = argued.named(made)
    assert len(set(names.values())) == len(names)
    number, name = next(iter(names.items()))
    unwritten = tuple("what nobody wrote" if key == "was" else value
                      for key, value in zip(argued.KEYS, name))
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        judge.argue(name, "one that is no good", folder)
        judge.argue(unwritten, "an argument", folder)
        judge.argue(name, "a better argument", folder)
        known, lost = argued.arguments(made, folder)
    assert known == {number: "a better argument"} and len(lost) == 1, (known, lost)


def check_races():
    """A report of ThreadSanitizer takes precedence over the test's own failure."""
    tests = object.__new__(hunters.Tests)
    tests.world, tests.seconds = "threads", {("room", "program", "A.B"): 1}
    said = {hunters.RACE: "program: race", "": "A.B"}
    usual = hunters.start
    for error, killer in said.items():
        hunters.start = lambda *_, **__: (66, "[  FAILED  ] A.B", error)
        assert tests.failed(pathlib.Path("program"), list(tests.seconds), 1) == killer
    hunters.start = usual


def main():
    try:
        places.libclang()
    except Exception as error:  # the bindings are missing, or their library
        print(f"skipped: no libclang ({error}): apt-get install python3-clang")
        return SKIPPED

    found = places.places(HERE / "tiny.h", ROOT)
    names = numbered(found)
    check_arguments(found)
    check_races()
    assert overlay.GUARD in KINDS
    missing = KINDS - {kind for _, kind in names.values()}
    assert not missing, f"not made: {sorted(missing)}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        dropped = without_errors(folder, sys.argv[1], found)
        usual = output(folder, 0)
        assert usual, "without a mutant, the program prints nothing"
        living = {names[n] for n in names if n not in dropped and output(folder, n) == usual}
    # Only swaps of arguments with different types do not compile.
    lost = sorted(names[n] for n in dropped)
    print(f"{len(names)} mutants, {len(dropped)} do not compile, {len(living)} survive")
    print("do not compile:", lost, "\nsurvive:", sorted(living))
    assert living == EQUIVALENT, sorted(living ^ EQUIVALENT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
