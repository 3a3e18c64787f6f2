"""The test programs of a room and of the rooms in it: which they are, and a run of them.

    room.py BUILD ROOM               prints the names of the programs, a line each
    room.py BUILD ROOM --run [FILTER]
                                     runs them, two processes at a time, or those of their tests
                                     whose names have FILTER in them

CMake writes which program is whose (BUILD/test_programs.txt). A program runs in eight parts, so
that one with a few long tests keeps two cores busy. Exit codes: 0, all passed; 1, one failed; 2,
there is no such room or no such test.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

PARTS = 8


def programs_of(build, room):
    lines = (build / "test_programs.txt").read_text().split("\n")
    pairs = [line.split() for line in lines if line]
    found = [program for of, program in pairs if of == room or of.startswith(room + "/")]
    if not found:
        rooms = ", ".join(sorted({of for of, _ in pairs}))
        sys.exit(refused(f"{room}: expected python, house, or a room with tests: {rooms}"))
    return found


def refused(message):
    print(f"dev: test {message}", file=sys.stderr)
    return 2


def count(program, pattern):
    listed = subprocess.run([program, "--gtest_list_tests", pattern], capture_output=True,
                            text=True, check=True).stdout
    return sum(line.startswith("  ") for line in listed.split("\n"))


def run_part(program, pattern, part):
    environment = {"RC_PARAMS": "seed=20250101", **os.environ,
                   "GTEST_TOTAL_SHARDS": str(PARTS), "GTEST_SHARD_INDEX": str(part)}
    return subprocess.run([program, "--gtest_brief=1", pattern], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run(build, room, only):
    pattern = f"--gtest_filter=*{only}*"
    names = set(programs_of(build, room))
    paths = sorted(path for path in (build / "tests").rglob("*")
                   if path.name in names and path.is_file() and os.access(path, os.X_OK))
    tests = {path: count(path, pattern) for path in paths}
    if not any(tests.values()):
        return refused(f"{room} {only}: none of its tests has '{only}' in its name")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        parts = [pool.submit(run_part, path, pattern, part)
                 for path in paths for part in range(min(PARTS, tests[path]))]
        failed = [part.result() for part in parts if part.result().returncode != 0]
    for part in failed:
        print(part.stdout)
    print(f"{room}: {sum(tests.values())} tests, {'some failed' if failed else 'all passed'}")
    return 1 if failed else 0


def main(build, room, *more):
    build = pathlib.Path(build)
    if not more:
        print("\n".join(programs_of(build, room)))
        return 0
    return run(build, room, more[1] if len(more) > 1 else "")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
