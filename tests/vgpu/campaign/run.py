"""The virtual GPU on what others wrote.

    run.py FERRY PYTHON [PACKAGES] [--part PART] [--only NAME...]

FERRY is a build's program; PYTHON has PyTorch and what `./dev campaign` installs beside it;
PACKAGES has a folder for each version of python/published.lock. A part's names are its schedules
(side-first) or programs. Prints a table for each part. Exit codes: 0 all is as it should be, 1 it
is not.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from judged import Tools  # noqa: E402
from libraries import try_programs  # noqa: E402
from published import try_cases  # noqa: E402
from pytorchs import try_tests  # noqa: E402

PARTS = {"pytorchs": try_tests, "libraries": try_programs, "published": try_cases}


def try_part(name, tools, only, pool):
    part, begun, faults = PARTS[name], time.monotonic(), []
    print(" | ".join(part.HEAD), flush=True)
    rows = 0
    for row, found in part.try_all(tools, only, pool):
        print(("FAILED | " if found else "") + " | ".join(row), flush=True)
        faults += found
        rows += 1
    print(f"{name}: {rows} rows in {time.monotonic() - begun:.0f} s", flush=True)
    return faults


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("ferry", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("python")
    parser.add_argument("packages", nargs="?", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--part", choices=list(PARTS), action="append")
    parser.add_argument("--only", nargs="*", default=())
    options = parser.parse_args(arguments)
    tools = Tools(str(options.ferry), options.python, options.ferry.parent / "python",
                  options.packages)
    faults = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name in options.part or PARTS:
            faults += try_part(name, tools, options.only, pool)
    for fault in faults:
        print(fault)
    print(f"the virtual GPU on what others wrote: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
