"""Hunts mutants, each in a process of its own: by the campaign's programs, then by the unit tests.

A place that nothing comes by is not hunted: what runs does not depend on it.
"""

import os
import pathlib
import re
import resource
import subprocess
import tempfile

import overlay

ROOMS = ("seam", "adaptors", "offload", "transfer", "skip", "checkpoint", "replay", "pipeline")
MEMORY = 4 << 30
TEST_SECONDS = 60
FAILED = re.compile(r"^\[  FAILED  \] (\S+)", re.MULTILINE)


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def start(command, mutant, seconds, reached=""):
    """(exit code or None for a time-out, stdout, stderr)"""
    environment = dict(os.environ, FERRY_MUTANT=str(mutant), FERRY_MUTANTS_REACHED=str(reached),
                       RC_PARAMS="seed=20250101")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, preexec_fn=bounded,
                              text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, "", ""
    return done.returncode, done.stdout, done.stderr


def reached_by(command, seconds=600):
    """The numbers of the mutants whose places a process comes by."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "reached"
        code, out, error = start(command, -1, seconds, path)
        if code != 0:
            raise RuntimeError(f"{command}: the core itself fails: {out[-2000:]}{error[-2000:]}")
        return {int(line) for line in path.read_text().split()} if path.exists() else set()


class Hunt:
    """`programs` of a seed."""

    def __init__(self, build, seed, programs):
        self.program = find(build, overlay.HUNT)
        self.seed, self.programs = seed, programs
        self.reached = reached_by(self.command(0, programs))

    def command(self, first, end):
        return [str(self.program), str(self.seed), str(first), str(end)]

    def kill(self, mutant):
        """(oracle, programs, words), or None."""
        if mutant not in self.reached:
            return None
        code, out, error = start(self.command(0, self.programs), mutant, 120 + self.programs / 10)
        if code == 0:
            return None
        if code == 1:
            number, _, verdict = out.strip().partition(" ")
            oracle, _, words = verdict.partition(": ")
            return oracle, int(number) + 1, words
        found = re.search(r"(crash|hang) in program (\d+)", error)
        if found:
            return found[1], min(int(found[2]), self.programs) + 1, ""
        return ("hang" if code is None else "crash"), 1, ""


class Tests:
    """The tests of the core's rooms: by each, which mutants it comes by."""

    def __init__(self, build, rooms=ROOMS):
        self.reached = {}
        for room in rooms:
            program = find(build, f"test_shared_{room}")
            for test in listed(program):
                command = [str(program), f"--gtest_filter={test}"]
                self.reached[(room, program, test)] = reached_by(command)

    def kill(self, mutant, room):
        """The first test that fails, of the mutant's own room if there is one; or None."""
        around = [key for key, numbers in self.reached.items() if mutant in numbers]
        for own in (True, False):
            programs = {key[1] for key in around if (key[0] == room) == own}
            for program in sorted(programs):
                tests = ":".join(key[2] for key in around if key[1] == program)
                command = [str(program), f"--gtest_filter={tests}", "--gtest_fail_fast"]
                code, out, _ = start(command, mutant, TEST_SECONDS)
                if code != 0:
                    failed, end = FAILED.search(out), "hang" if code is None else "crash"
                    return failed[1] if failed else f"{program.name}: {end}"
        return None


def find(build, name):
    found = [p for p in pathlib.Path(build).rglob(name) if p.is_file() and os.access(p, os.X_OK)]
    return found[0]


def listed(program):
    suite, tests = "", []
    for line in subprocess.run([str(program), "--gtest_list_tests"], capture_output=True,
                               text=True, check=True).stdout.splitlines():
        line = line.partition("#")[0].rstrip()
        if line.startswith("  "):
            tests.append(suite + line.strip())
        elif line.endswith("."):
            suite = line
    return tests
