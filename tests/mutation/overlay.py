"""Makes a second source tree whose `shared` contains all mutants, and builds it.

All other folders are links to this tree. Mutants that do not compile are dropped: schemata.py says
which mutant wrote the place that an error of the compiler names.
"""

import hashlib
import json
import os
import pathlib
import pickle
import re
import shlex
import subprocess

import places
import schemata

CHOSEN = '#include "tests/mutation/chosen.h"'
ERROR = re.compile(r"^(/[^:\s]+):(\d+):(\d+):\s+(error|fatal error|required from|in .*required)",
                   re.MULTILINE)
# These sources instantiate most of the core. They are compiled first, because a build takes longer.
PROBES = ("sim/run/core.cpp", "verify/trials/try_pipeline.cpp", "sim/run/simulation.cpp",
          "sim/run/training/run_training.cpp", "sim/run/training/checkpoints.cpp",
          "sim/run/pipeline_simulation.cpp", "sim/program/tape.cpp",
          "verify/trials/try_core.cpp")
REAL_PROBES = ("real/api/offload.cpp", "real/api/checkpoint.cpp", "real/api/replays.cpp",
               "real/cuda_backend/cuda_backend.cpp", "real/pipeline/pipe.cpp")
# Tests of a world that instantiate code which the libraries do not.
TEST_PROBES = {"test_real_cuda_autograd": [
    f"tests/real/cuda_autograd/{name}.cpp"
    for name in ("offload_rules_test", "checkpoint_rules_test", "pipe_rules_test")]}
HUNT = "ferry_mutation_hunt"
GUARD = "guard removed"


class DoesNotCompile(Exception):
    """The tree does not compile, and no mutant can be blamed."""


class Overlay:
    """`files` of shared are relative to the root; mutants are numbered in their order. `torch`:
    builds with the LibTorch in that folder, in a separate tree, because other mutants do not
    compile there. `threads`: only removes guards, and builds with ThreadSanitizer in a separate
    tree."""

    def __init__(self, root, folder, files, torch=None, threads=False):
        self.root, self.folder = pathlib.Path(root), pathlib.Path(folder).resolve()
        self.torch, self.threads = torch, threads
        own = self.folder / ("real" if torch else "threads" if threads else "")
        self.tree, self.build = own / "tree", own / "build"
        self.files, self.names, self.dropped = sorted(files), {}, set()
        self.texts = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.places = self.found()
        for file, found in self.places.items():
            for place in found:
                for form in place.forms:
                    form.number = len(self.names) + 1
                    self.names[form.number] = (file, place.line, form.kind)
        self.unasked = {n for n, (_, _, kind) in self.names.items() if threads and kind != GUARD}
        self.dropped |= self.unasked
        name = f"dropped-{self.digest()}.json"
        self.known = own / name
        self.learn(self.folder / name)
        self.learn(self.known)

    def learn(self, known):
        """Reads mutants that earlier runs dropped. Returns whether there are new ones."""
        dropped = set(json.loads(known.read_text())) if known.exists() else set()
        more = dropped - self.dropped
        self.dropped |= more
        return bool(more)

    def found(self):
        """The places of each file. They are cached, because libclang is slow."""
        kept = self.folder / f"places-{self.digest()}.pickle"
        if not kept.exists():
            found = {file: places.places(self.root / file, self.root) for file in self.files}
            kept.write_bytes(pickle.dumps(found))
        return pickle.loads(kept.read_bytes())

    def digest(self):
        """A digest of everything that the numbers and the dropped mutants depend on."""
        tools = [pathlib.Path(__file__).parent / name for name in ("places.py", "schemata.py")]
        texts = [path.read_bytes() for path in [*tools, *map(self.root.joinpath, self.files)]]
        return hashlib.sha256(b"".join(texts)).hexdigest()[:12]

    def make(self):
        """Writes the tree and configures its build."""
        self.tree.mkdir(parents=True, exist_ok=True)
        for entry in self.root.iterdir():
            link = self.tree / entry.name
            if entry.name not in ("shared", "build", ".git") and not link.is_symlink():
                link.symlink_to(entry)
        for file in self.root.glob("shared/**/*.*"):
            name = file.relative_to(self.root)
            if str(name) not in self.places:
                write(self.tree / name, file.read_text())
        self.write()
        run(["cmake", "-S", str(self.tree), "-B", str(self.build), "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g0",
             "-DCMAKE_CXX_FLAGS=-w", f"-DFERRY_TORCH={self.torch or 'OFF'}", "-DFERRY_BENCH=OFF",
             "-DFERRY_MUTATION=ON", f"-DFERRY_SANITIZE={'thread' if self.threads else ''}"])

    def write(self, keep_time=False):
        for file, found in self.places.items():
            alive = [self.without_dropped(place) for place in found]
            source = (self.root / file).read_bytes()
            rendered = schemata.render(source, [p for p in alive if p.forms], CHOSEN)
            self.texts[str(self.tree / file)] = rendered
            write(self.tree / file, rendered.text, keep_time)

    def without_dropped(self, place):
        forms = [form for form in place.forms if form.number not in self.dropped]
        return schemata.dataclasses.replace(place, forms=forms)

    def compile(self, targets, say):
        """Drops mutants that do not compile, and builds the rest. A changed file keeps its time:
        what was compiled with it stays valid, because dropped mutants are never chosen."""
        if self.learn(self.known):
            self.write(keep_time=True)
        commands = json.loads((self.build / "compile_commands.json").read_text())
        asked = [*(REAL_PROBES if self.torch else () if self.threads else PROBES),
                 *(name for target in targets for name in TEST_PROBES.get(target, ()))]
        probes = [c for c in commands if c["file"] in [str(self.tree / name) for name in asked]]
        if self.torch:  # without precompiled headers, each probe takes a minute longer
            run(["ninja", "-C", str(self.build), "ferry_torch_pch", "ferry_aten_pch"])
        for probe in probes:
            while self.drop(output_of(probe), probe["file"], say):
                self.write(keep_time=True)
        while True:
            done = run(["ninja", "-C", str(self.build), "-j2", "-k0", *targets], check=False)
            if done.returncode == 0:
                return
            failed = set(re.findall(r"^FAILED: (\S+)", done.stdout, re.MULTILINE))
            again = [c for c in commands if shlex.split(c["command"])[-3] in failed or
                     any(c["command"].find(f" -o {name} ") >= 0 for name in failed)]
            if not again or not any([self.drop(output_of(c), c["file"], say) for c in again]):
                raise DoesNotCompile(done.stdout[-4000:])
            self.write(keep_time=True)

    def drop(self, output, file, say):
        """Drops the mutants that the compiler's errors blame. Returns whether there were any."""
        blamed, errors = set(), 0
        context = []
        for name, line, column, what in ERROR.findall(output):
            text = self.texts.get(name)
            numbers = text.blamed(int(line), int(column)) if text else []
            if "required" in what:
                context = numbers or context
                continue
            errors += 1
            blamed.update(numbers or context)
            context = []
        if not errors:
            return False
        if not blamed:
            raise DoesNotCompile(f"{file}: {output[:4000]}")
        blamed -= self.dropped  # errors of another file blamed them already
        say(f"{pathlib.Path(file).name}: {errors} errors, {len(blamed)} mutants dropped")
        self.dropped |= blamed
        self.known.write_text(json.dumps(sorted(self.dropped)))
        return bool(blamed)


def write(path, text, keep_time=False):
    """Writes a file only if its text changes, so that it is not compiled again without need."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_text() == text:
        return
    before = path.stat() if keep_time and path.exists() else None
    path.write_text(text)
    if before:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def output_of(command):
    """The compiler's errors for a file, without code generation."""
    words = shlex.split(command["command"])
    if "ccache" in " ".join(words[:6]):
        words = words[next(i for i, w in enumerate(words) if w.endswith("ccache")) + 1:]
    done = run([*words, "-fsyntax-only", "-fmax-errors=0"], check=False, cwd=command["directory"])
    return done.stderr


def run(command, check=True, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if check and done.returncode:
        raise DoesNotCompile(done.stdout + done.stderr)
    return done
