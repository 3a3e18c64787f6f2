"""Hunts mutants, each in a process of its own: by the campaign's programs, then by the unit tests.

A place that nothing comes by is not hunted: what runs does not depend on it.
"""

import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time

import overlay

# The tests of the core's rooms, and the simulations whose times were worked out by hand.
TESTS = {room: f"test_shared_{room}" for room in (
    "seam", "adaptors", "offload", "transfer", "skip", "checkpoint", "replay", "pipeline")}
TESTS["run"] = "test_sim_run"
MEMORY = 4 << 30
FAILED = re.compile(r"^\[  FAILED  \] (\S+)", re.MULTILINE)


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def start(command, mutant, seconds, reached="", given=""):
    """(exit code or None for a time-out, stdout, stderr)"""
    environment = dict(os.environ, FERRY_MUTANT=str(mutant), FERRY_MUTANTS_REACHED=str(reached),
                       RC_PARAMS="seed=20250101")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, preexec_fn=bounded,
                              text=True, errors="replace", timeout=seconds, input=given)
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
    """The unit tests: by each, which mutants it comes by and how long it takes."""

    def __init__(self, build):
        self.reached, self.seconds = {}, {}
        for room, name in TESTS.items():
            program = find(build, name)
            for test in listed(program):
                begin = time.monotonic()
                self.reached[(room, program, test)] = reached_by(command(program, [test]))
                self.seconds[(room, program, test)] = time.monotonic() - begin

    def kill(self, mutant, room):
        """The first test that fails, of the mutant's own room if there is one, or ""."""
        around = [key for key, numbers in self.reached.items() if mutant in numbers]
        for own in (True, False):
            programs = {key[1] for key in around if (key[0] == room) == own}
            for program in sorted(programs):
                tests = [key for key in around if key[1] == program]
                # Noting what is come by takes longer than running it; the machine may be busy.
                limit = 20 + 4 * sum(self.seconds[key] for key in tests)
                code, out, _ = start(command(program, [key[2] for key in tests]), mutant, limit)
                if code != 0:
                    failed, end = FAILED.search(out), "hang" if code is None else "crash"
                    return failed[1] if failed else f"{program.name}: {end}"
        return ""


def command(program, tests):
    return [str(program), f"--gtest_filter={':'.join(tests)}", "--gtest_fail_fast"]


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
