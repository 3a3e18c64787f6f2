"""The command `ferry` of a Python environment: it starts the program in the package torch_ferry.

This is a package of its own because importing torch_ferry also imports torch, which takes seconds.
So the command only looks up the folder of torch_ferry and does not import it.
"""

import importlib.util
import os
import sys


def main():
    package = importlib.util.find_spec("torch_ferry")
    if package is None:
        sys.exit(f"ferry: {sys.executable} does not have the package torch_ferry, which contains "
                 "this command; run it with the Python that torch_ferry was installed for")
    program = os.path.join(package.submodule_search_locations[0], "bin", "ferry")
    # `ferry run` runs scripts with this Python, unless the user set FERRY_PYTHON.
    os.environ.setdefault("FERRY_PYTHON", sys.executable)
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"ferry: cannot run {program}: {error.strerror}; install torch_ferry again")
