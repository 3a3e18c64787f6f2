"""Hunts mutants, each in a process of its own: by the campaign's programs, then by the unit tests.

A place that nothing comes by is not hunted: what runs does not depend on it.
"""

import functools
import hashlib
import math
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

import overlay

# By world: the tests of the core's rooms, and the simulations whose times were worked out by hand;
# those of the CPU's device, and of all that LibTorch's autograd does over it; those that run the
# CUDA device on the virtual GPU, the last of them being written for a GPU; and, under
# ThreadSanitizer, those of the core that have threads.
TESTS = {
    "sim": {room: f"test_shared_{room}" for room in (
        "seam", "adaptors", "offload", "transfer", "skip", "checkpoint", "replay", "pipeline")},
    "cpu": {"offload": "test_real_cpu", "checkpoint": "test_real_api_checkpoint",
            "replay": "test_real_api_replay", "selective": "test_real_api_selective",
            "pipeline": "test_real_pipeline", "api": "test_real_api"},
    "cuda": {"device": "test_real_cuda", "autograd": "test_real_cuda_autograd",
             "gpu": "ferry_gpu_tests"},
    "threads": {room: f"test_shared_{room}" for room in ("offload", "checkpoint", "replay")},
}
TESTS["sim"]["run"] = "test_sim_run"
WORLDS = tuple(TESTS)
# The address space of a process. LibTorch maps its libraries, the virtual GPU its addresses,
# ThreadSanitizer nearly all that there is.
MEMORY = {"sim": 4 << 30, "cpu": 64 << 30, "cuda": 1 << 42, "threads": resource.RLIM_INFINITY}
# Of one mutant's tests, the quickest first: each start of LibTorch takes a second.
SECONDS = {"sim": float("inf"), "cpu": 20, "cuda": 20, "threads": float("inf")}
# A filter of tests. On the virtual GPU without the hunts of mutants that were made by hand: they
# take longest, and do not ask whether the core does it right.
FILTER = {"cuda": "-*Mutant.*:*MutantOnGpu.*", "threads": "*Threads*"}
# What runs on the virtual GPU without being linked to it: as in tests/real/CMakeLists.txt.
PRELOADED = {"ferry_gpu_tests": "libferry_virtual_gpu.so"}
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+)", re.MULTILINE)
RACE = "WARNING: ThreadSanitizer"


def start(command, mutant, seconds, given="", world="sim", noted=None):
    """(exit code or None for a time-out, stdout, stderr). Seconds are of processor time, for the
    machine may be busy; what waits is let wait for thrice that."""
    environment = dict(os.environ, FERRY_MUTANT=str(mutant), RC_PARAMS="seed=20250101",
                       OMP_NUM_THREADS="1", TSAN_OPTIONS="halt_on_error=1")
    environment.update(on_the_virtual_gpu(command[0]))
    if noted:
        environment["FERRY_MUTANTS_NOTED"] = str(noted)

    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY[world], MEMORY[world]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), resource.RLIM_INFINITY))

    try:
        done = subprocess.run(command, env=environment, capture_output=True, preexec_fn=bounded,
                              text=True, errors="replace", timeout=3 * seconds, input=given)
    except subprocess.TimeoutExpired:
        return None, "", ""
    code = None if done.returncode == -signal.SIGXCPU else done.returncode
    return code, done.stdout, done.stderr


@functools.lru_cache
def on_the_virtual_gpu(program):
    """What a program that is written for a GPU runs with, so that it runs where there is none. At
    an eager tempo its own sleeps say who is late."""
    path = pathlib.Path(program)
    if path.name not in PRELOADED:
        return {}
    build = next(folder for folder in path.parents if (folder / "CMakeCache.txt").exists())
    return {"FERRY_PRELOADED_GPU": "1", "FERRY_PRELOADED_GPU_TEMPO": "eager",
            "FERRY_PRELOADED_GPU_DEVICES": "2",
            "LD_PRELOAD": str(find(build, PRELOADED[path.name]))}


class Hunt:
    """Programs 0 to `programs` of a seed; of these, for each mutant the first `most` that come by
    its place."""

    def __init__(self, build, seed, programs, most):
        self.command = [str(find(build, overlay.HUNT)), str(seed), str(most)]
        self.usual, self.reached = {}, {}
        numbers = "\n".join(map(str, range(programs)))
        code, out, error = start(self.command, -1, 600 + programs / 10, given=numbers)
        if code != 0:
            raise RuntimeError(f"the core itself fails: {out[-2000:]}{error[-2000:]}")
        for line in out.splitlines():
            program, digest, *mutants = line.split()
            self.usual[program] = digest
            for mutant in mutants:
                self.reached.setdefault(int(mutant), []).append(program)

    def kill(self, mutant):
        """{tried, oracle, program, words}: who objected, to which program, the how manieth tried.
        The oracle is "" if nobody did, and `differs` the first program whose operations are not
        the core's, or None."""
        programs = self.reached.get(mutant, [])
        found = {"tried": len(programs), "oracle": "", "differs": None}
        if not programs:
            return found
        code, out, error = start(self.command, mutant, 120 + len(programs),
                                 given="\n".join(programs))
        if code == 0:
            differs = (p for p, digest in map(str.split, out.splitlines())
                       if self.usual[p] != digest)
            return {**found, "differs": next(map(int, differs), None)}
        program, _, verdict = out.strip().partition(" ")
        oracle, _, words = verdict.partition(": ")
        fault = re.search(r"(crash|hang) in program (\d+)", error)
        if code != 1 or program not in programs:
            oracle, words = fault[1] if fault else "hang" if code is None else "crash", ""
            program = fault[2] if fault and fault[2] in programs else programs[0]
        return {"tried": programs.index(program) + 1, "oracle": oracle, "program": int(program),
                "words": words}


class Tests:
    """A world's tests, or those of some of its rooms: by each, which mutants it comes by and how
    long it takes."""

    def __init__(self, build, world, rooms=None):
        self.world, self.reached, self.seconds = world, {}, {}
        for room in rooms or TESTS[world]:
            program = find(build, TESTS[world][room])
            for test, milliseconds, numbers in noted(program, world):
                self.reached[(room, program, test)] = numbers
                self.seconds[(room, program, test)] = milliseconds / 1000

    def kill(self, mutant, room):
        """The first test that fails, of the mutant's own room if there is one, or ""; None where
        none comes by it."""
        around = [key for key, numbers in self.reached.items() if mutant in numbers]
        around.sort(key=lambda key: (key[0] != room, self.order(key)))
        seconds, tests = 0, {}
        for key in around:
            seconds += self.seconds[key]
            if seconds > SECONDS[self.world] and tests:
                break
            tests.setdefault((key[0] != room, key[1]), []).append(key)
        for (_, program), keys in tests.items():
            failed = self.failed(program, keys, mutant)
            # On the CPU threads take turns, and the machine may be busy.
            if failed and (self.world == "sim" or not self.failed(program, keys, 0)):
                return failed
        return "" if around else None

    def order(self, key):
        """By time alone where there is not time for all."""
        program = key[1] if SECONDS[self.world] == float("inf") else ""
        return str(program), self.seconds[key]

    def failed(self, program, keys, mutant):
        # Noting what is come by takes longer than running it.
        limit = 20 + 4 * sum(self.seconds[key] for key in keys)
        code, out, error = start(command(program, [key[2] for key in keys]), mutant, limit,
                                 world=self.world)
        if code == 0:
            return ""
        if RACE in error:
            return f"{program.name}: race"
        failed, end = FAILED.search(out), "hang" if code is None else "crash"
        return failed[1] if failed else f"{program.name}: {end}"


def digest(build, world):
    """Of the world's tests as they are built."""
    texts = [find(build, name).read_bytes() for name in sorted(TESTS[world].values())]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


def noted(program, world):
    """Of each test of a program: its name, milliseconds, and the mutants whose places it comes
    by."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "noted"
        code, out, error = start(command(program, [FILTER.get(world, "*")]), -1, 1800,
                                 world=world, noted=path)
        if code != 0:
            raise RuntimeError(f"{program}: the core itself fails: {out[-2000:]}{error[-2000:]}")
        for line in path.read_text().splitlines():
            test, milliseconds, *numbers = line.split()
            yield test, int(milliseconds), set(map(int, numbers))


def command(program, tests):
    return [str(program), f"--gtest_filter={':'.join(tests)}", "--gtest_fail_fast"]


def find(build, name):
    found = [p for p in pathlib.Path(build).rglob(name) if p.is_file() and os.access(p, os.X_OK)]
    return found[0]
