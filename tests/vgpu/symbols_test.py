"""Every entry point of CUDA's runtime that LibTorch's libraries call is the virtual GPU's own: what
it does not have is refused by name there, and not answered by the real libcudart.

    symbols_test.py RUNTIME TORCH
"""

import pathlib
import re
import subprocess
import sys
import unittest

RUNTIME, TORCH = (pathlib.Path(path) for path in sys.argv[1:3])


def symbols(library, which):
    listed = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True,
                            check=True).stdout
    names = (line.split()[-1].split("@")[0] for line in listed.splitlines())
    return {name for name in names if re.match("_*cuda[A-Z]", name)}


class Symbols(unittest.TestCase):
    def test_none_is_left_to_another_library(self):
        defined = symbols(RUNTIME, "--defined-only")
        libraries = sorted((TORCH / "lib").glob("lib*.so"))
        called = {library.name: symbols(library, "--undefined-only") for library in libraries}
        self.assertGreater(len(called["libtorch_cuda.so"]), 20)
        self.assertGreater(len(called["libc10_cuda.so"]), 20)
        for name, wanted in called.items():
            self.assertEqual(wanted - defined, set(), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
