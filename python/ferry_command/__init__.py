"""The command `ferry` of an environment: the program inside its package torch_ferry.

A package of its own. That one is found and not imported, for with it torch would be, which takes
seconds.
"""

import importlib.util
import os
import sys


def main():
    package = importlib.util.find_spec("torch_ferry")
    if package is None:
        sys.exit(f"ferry: {sys.executable} does not have the package torch_ferry, whose command "
                 "this is; expected the Python that it was installed with")
    program = os.path.join(package.submodule_search_locations[0], "bin", "ferry")
    # `ferry run` runs scripts with this Python, unless it is told of another one.
    os.environ.setdefault("FERRY_PYTHON", sys.executable)
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"ferry: cannot run {program}: {error.strerror}; install torch_ferry again")
