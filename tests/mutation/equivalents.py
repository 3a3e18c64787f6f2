"""Finds equivalent mutants: those with the same object code as the core.

With -DFERRY_MUTATION_FIXED the compiler sees its mutants as if they were written in the code.

1. Assembly without inlining shows which functions a mutant changes. One compilation tries several
   mutants, no two of them in the same function. A mutant that changes no function is a candidate.
2. The object file is compiled as in the build, without and with all candidates. If the two differ,
   each half of the candidates is tried again.

Only the sources that instantiate most of the core are compiled (overlay.PROBES). A mutant without
code in any of them stays undecided.
"""

import collections
import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import tempfile

import overlay

ALONE = ["-O2", "-g1", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-ra",
         "-fno-ipa-icf", "-fno-ipa-pure-const", "-fno-ipa-modref", "-fno-ipa-vrp",
         "-fno-ipa-bit-cp", "-fno-ipa-reference", "-fno-partial-inlining", "-S"]
AS_BUILT = ["-O2", "-g0", "-c"]
START = re.compile(r"\t\.type\t(\S+), @function")
SOURCE = re.compile(r'\t\.file (\d+) "([^"]*)"(?: "([^"]*)")?')
AT = re.compile(r"\t\.loc (\d+) (\d+)")
DATA = re.compile(r"\t\.(string|ascii|byte|value|long|quad|zero|octa)\t")
LABEL = re.compile(r"\.L[A-Z]*\d+")


class Functions:
    """The functions of an assembly file: their code, and which have code of a (file, line)."""

    def __init__(self, text):
        lines = text.splitlines()
        self.constants = constants(lines)
        self.code, self.at, files, name, body = {}, collections.defaultdict(set), {}, None, []
        for line in lines:
            source, place, begins = SOURCE.match(line), AT.match(line), START.match(line)
            if source:
                files[source[1]] = "/".join(filter(None, source.groups()[1:]))
            elif place and name:
                self.at[files.get(place[1], ""), int(place[2])].add(name)
            elif begins and not name:
                name, body = begins[1], []
            elif name and line == f"\t.size\t{name}, .-{name}":
                self.code[name] = self.normal(body)
                name = None
            elif name and not line.startswith((".LVL", ".LBB", ".LBE", ".LBI", ".LM")):
                body.append(line)

    def normal(self, body):
        """Renames labels by their order in the function, and constants by their value."""
        known = {}

        def renamed(match):
            label = match[0]
            return self.constants.get(label) or known.setdefault(label, f".L{len(known)}")

        return LABEL.sub(renamed, "\n".join(body))


def constants(lines):
    """The data at each label .LC."""
    found, label = {}, None
    for line in lines:
        if line.startswith(".LC") and line.endswith(":"):
            label = line[:-1]
            found[label] = "const"
        elif label and DATA.match(line):
            found[label] += line
        else:
            label = None
    return found


class Compiler:
    """Compiles one source of the overlay."""

    def __init__(self, command, folder):
        words = shlex.split(command["command"])
        if "ccache" in " ".join(words[:6]):
            words = words[next(i for i, w in enumerate(words) if w.endswith("ccache")) + 1:]
        at = words.index("-o")
        self.words = words[:at] + [w for w in words[at + 2:] if w != "-c"]
        self.directory = command["directory"]
        self.out = pathlib.Path(folder) / pathlib.Path(command["file"]).name
        self.functions = Functions(self.made([], ALONE).decode(errors="replace"))
        self.object = self.made([], AS_BUILT)

    def made(self, mutants, flags):
        fixed = f"-DFERRY_MUTATION_FIXED={','.join(map(str, mutants)) or 0}"
        with tempfile.NamedTemporaryFile(prefix=str(self.out)) as out:
            subprocess.run([*self.words, *flags, fixed, "-o", out.name], cwd=self.directory,
                           check=True, capture_output=True)
            return pathlib.Path(out.name).read_bytes()

    def changed(self, mutants):
        """The functions that changed, are gone, or are new."""
        now = Functions(self.made(mutants, ALONE).decode(errors="replace")).code
        before = self.functions.code
        return {name for name in now.keys() | before.keys() if now.get(name) != before.get(name)}

    def same(self, mutants):
        """Returns the mutants that do not change the object file."""
        if not mutants or self.made(mutants, AS_BUILT) == self.object:
            return list(mutants)
        if len(mutants) == 1:
            return []
        half = len(mutants) // 2
        return self.same(mutants[:half]) + self.same(mutants[half:])


def lines_of(made, number):
    """The (file, line) pairs of a mutant's place, as the assembly names them."""
    for file, places in made.places.items():
        for place in places:
            if any(form.number == number for form in place.forms):
                source = (made.root / file).read_bytes()
                last = place.line + source.count(b"\n", place.start, place.end)
                name = str(made.tree / file)
                return [(name, line) for line in range(place.line, last + 1)]
    return []


def apart(functions_of):
    """Returns groups of mutants. No two mutants of a group change the same function."""
    groups = []
    for number, functions in sorted(functions_of.items(), key=lambda e: (-len(e[1]), e[0])):
        for group, taken in groups:
            if not taken & functions:
                break
        else:
            group, taken = [], set()
            groups.append((group, taken))
        group.append(number)
        taken |= functions
    return [group for group, _ in groups]


def suspected(compiler, group, functions_of):
    changed = compiler.changed(group)
    return [n for n in group if not functions_of[n] & changed]


def equivalents(made, numbers, jobs, say):
    """Returns {number: whether no source with code of the mutant changes}. Mutants without code in
    any source are left out."""
    commands = {c["file"]: c for c in
                overlay.json.loads((made.build / "compile_commands.json").read_text())}
    lines = {number: lines_of(made, number) for number in numbers}
    verdicts = {}
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for probe in overlay.PROBES:
            compiler = Compiler(commands[str(made.tree / probe)], folder)
            functions_of = {n: set().union(*(compiler.functions.at[at] for at in lines[n]))
                            for n in numbers if verdicts.get(n, True)}
            functions_of = {n: found for n, found in functions_of.items() if found}
            groups = apart(functions_of)
            say(f"{probe}: {len(functions_of)} mutants in {len(groups)} compilations")
            alike = set()
            for found in pool.map(lambda g: suspected(compiler, g, functions_of), groups):
                alike.update(found)
            groups = [[n for n in group if n in alike] for group in groups]
            alike = set().union(*pool.map(compiler.same, groups)) if groups else set()
            say(f"{len(alike)} of them have the core's object code")
            for number in functions_of:
                verdicts[number] = number in alike
    return verdicts
