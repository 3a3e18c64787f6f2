"""A sweep that is killed time and again, and resumed, has the bytes of one that ran through.

    killed.py FERRY [--items N] [--kills K] [--seed S] [--mpirun MPIRUN]

Each run is killed after so many more lines and milliseconds as the seed draws, and the last one
runs through; with MPIRUN every second one has two ranks, of which one is killed. Prints what it
measured; exit code 1 where the bytes differ.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PROGRAMS, CARDS = ("gpt2", "unet"), ("h100", "rtx4090")
POLICIES = ("keep", "offload")


def sweep_of(items):
    budgets = -(-items // (len(PROGRAMS) * len(CARDS) * len(POLICIES)))
    lists = {"programs": PROGRAMS, "hardware": CARDS, "policies": POLICIES,
             "budgets": [f"{4096 + 16 * i}MiB" for i in range(budgets)]}
    return "".join(f"{name} = {list(values)}\n" for name, values in lists.items())


def command(options, launcher, output):
    return [*launcher, options.ferry, "sweep", "s.toml", "-o", output]


def lines_in(file):
    return file.read_bytes().count(b"\n") if file.exists() else 0


def run(options, folder, launcher, output):
    """Whether it ran through."""
    return subprocess.run(command(options, launcher, output), cwd=folder,
                          stdout=subprocess.DEVNULL).returncode == 0


def children_of(process):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return sorted(found)


def kill_at(options, folder, launcher, output, lines, draw):
    """How many lines there are then; none: it ran through."""
    process = subprocess.Popen(command(options, launcher, output), cwd=folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and lines_in(folder / output) < lines:
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.02))
    victims = children_of(process.pid) if launcher else [process.pid]
    if process.poll() is not None or not victims:
        process.wait()
        return None
    os.kill(draw.choice(victims), signal.SIGKILL)
    process.wait()
    wait_until_nobody_has(folder / output)
    return lines_in(folder / output)


def wait_until_nobody_has(file):
    """A rank may end a moment after its mpirun; until then the results are locked."""
    with open(file, "rb") as results:
        fcntl.flock(results, fcntl.LOCK_EX)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ferry", type=os.path.abspath)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mpirun")
    options = parser.parse_args()
    ranks = [options.mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "s.toml").write_text(sweep_of(options.items))
        begun = time.monotonic()
        if not run(options, folder, [], "whole.jsonl"):
            sys.exit("the sweep did not run through")
        taken = time.monotonic() - begun
        whole = (folder / "whole.jsonl").read_bytes()
        done = [0]
        for kill in range(options.kills):
            launcher = ranks if options.mpirun and kill % 2 else []
            more = draw.randrange(1, 2 * options.items // (options.kills + 1))
            lines = min(done[-1] + more, options.items - 10)
            done.append(kill_at(options, folder, launcher, "killed.jsonl", lines, draw))
            if done[-1] is None:
                sys.exit(f"it ran through before it was killed {options.kills} times")
        if not run(options, folder, [], "killed.jsonl"):
            sys.exit("the last run did not run through")
        same = (folder / "killed.jsonl").read_bytes() == whole
        items = whole.count(b"\n")
    print(f"{items} items in {taken:.1f} s; killed {options.kills} times, after {done[1:]} lines; "
          f"{'the same bytes' if same else 'OTHER BYTES'}, {hashlib.sha256(whole).hexdigest()[:16]}")
    return 0 if same and items >= options.items else 1


if __name__ == "__main__":
    sys.exit(main())
