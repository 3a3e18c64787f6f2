"""Tries to kill mutants, each in its own process: with random programs, then with unit tests.

A mutant is tried only on programs and tests that execute it. No other run can depend on it.
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

# The tests of each world. sim: the core's rooms, and simulations with times worked out by hand.
# cpu: the CPU device, and LibTorch's autograd over it. cuda: the CUDA device on the virtual GPU;
# the last program is written for a GPU. threads: tests with threads, under ThreadSanitizer.
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
# Limit of a process's address space, in bytes. LibTorch maps its libraries, the virtual GPU its
# addresses, and ThreadSanitizer almost the whole address space.
MEMORY = {"sim": 4 << 30, "cpu": 64 << 30, "cuda": 1 << 42, "threads": resource.RLIM_INFINITY}
# Time for all tests of one mutant, the quickest first: each start of LibTorch takes a second.
SECONDS = {"sim": float("inf"), "cpu": 20, "cuda": 20, "threads": float("inf")}
# Filters of tests. On the virtual GPU the tests of mutants made by hand are left out: they take
# longest, and do not check the core.
FILTER = {"cuda": "-*Mutant.*:*MutantOnGpu.*", "threads": "*Threads*"}
# Programs that need the virtual GPU preloaded, as in tests/real/CMakeLists.txt.
PRELOADED = {"ferry_gpu_tests": "libferry_virtual_gpu.so"}
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+)", re.MULTILINE)
RACE = "WARNING: ThreadSanitizer"


def start(command, mutant, seconds, given="", world="sim", noted=None):
    """Returns (exit code or None for a time-out, stdout, stderr). The limit is processor time,
    because the machine may be busy. The limit of real time is three times that."""
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
    """The environment in which a program for a GPU runs on the virtual GPU. With an eager tempo,
    the program's own sleeps decide what is late."""
    path = pathlib.Path(program)
    if path.name not in PRELOADED:
        return {}
    build = next(folder for folder in path.parents if (folder / "CMakeCache.txt").exists())
    return {"FERRY_PRELOADED_GPU": "1", "FERRY_PRELOADED_GPU_TEMPO": "eager",
            "FERRY_PRELOADED_GPU_DEVICES": "2",
            "LD_PRELOAD": str(find(build, PRELOADED[path.name]))}


class Hunt:
    """Programs 0 to `programs` of a seed. Each mutant is tried on the first `most` that execute
    it."""

    def __init__(self, build, seed, programs, most):
        self.command = [str(find(build, overlay.HUNT)), str(seed), str(most)]
        self.usual, self.reached = {}, {}
        numbers = "\n".join(map(str, range(programs)))
        code, out, error = start(self.command, -1, 600 + programs / 10, given=numbers)
        if code != 0:
            raise RuntimeError(f"the core fails without a mutant: {out[-2000:]}{error[-2000:]}")
        for line in out.splitlines():
            program, digest, *mutants = line.split()
            self.usual[program] = digest
            for mutant in mutants:
                self.reached.setdefault(int(mutant), []).append(program)

    def kill(self, mutant):
        """Returns {tried, oracle, program, words}: how many programs were tried, which oracle
        objected to which one, and what it said. If none objected, the oracle is "", and `differs`
        is the first program with other operations than the core, or None."""
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
    """The tests of a world, or of some of its rooms, each with the mutants that it executes and the
    time that it takes."""

    def __init__(self, build, world, rooms=None):
        self.world, self.reached, self.seconds = world, {}, {}
        for room in rooms or TESTS[world]:
            program = find(build, TESTS[world][room])
            for test, milliseconds, numbers in noted(program, world):
                self.reached[(room, program, test)] = numbers
                self.seconds[(room, program, test)] = milliseconds / 1000

    def kill(self, mutant, room):
        """Returns the first test that fails, of the mutant's own room if possible; "" if none
        fails; None if none executes the mutant."""
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
        """Sorts by time alone if there is not enough time for all tests."""
        program = key[1] if SECONDS[self.world] == float("inf") else ""
        return str(program), self.seconds[key]

    def failed(self, program, keys, mutant):
        # The recorded times are longer, because they include recording the mutants.
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
    """A digest of the world's tests as they are built."""
    texts = [find(build, name).read_bytes() for name in sorted(TESTS[world].values())]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


def noted(program, world):
    """Yields for each test of a program: its name, milliseconds, and the mutants that it
    executes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "noted"
        code, out, error = start(command(program, [FILTER.get(world, "*")]), -1, 1800,
                                 world=world, noted=path)
        if code != 0:
            raise RuntimeError(f"{program} fails without a mutant: {out[-2000:]}{error[-2000:]}")
        for line in path.read_text().splitlines():
            test, milliseconds, *numbers = line.split()
            yield test, int(milliseconds), set(map(int, numbers))


def command(program, tests):
    return [str(program), f"--gtest_filter={':'.join(tests)}", "--gtest_fail_fast"]


def find(build, name):
    found = [p for p in pathlib.Path(build).rglob(name) if p.is_file() and os.access(p, os.X_OK)]
    return found[0]
