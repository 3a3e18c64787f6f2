"""`ferry calibrate` of the package runs the program for this torch, beside torch's libraries."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from torch_ferry import _versions, calibrate

LIBRARIES = str(pathlib.Path(torch.__file__).parent / "lib")


class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.package = pathlib.Path(folder.name)

    def put(self, minor):
        program = self.package / "bin" / f"torch-{minor}" / "ferry-calibrate"
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH" "$@"\n')
        program.chmod(0o755)
        return program

    def run_main(self, *arguments, **environment):
        code = ("import pathlib, sys; from torch_ferry import calibrate as c; given = c.program\n"
                f"c.program = lambda: given(pathlib.Path({str(self.package)!r})); c.main()")
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True,
                              text=True, check=False, env=dict(os.environ, **environment))

    def test_it_is_the_program_for_this_torch(self):
        self.put("2.0")
        mine = self.put(_versions.minor(torch.__version__))
        self.assertEqual(mine, calibrate.program(self.package))

    def test_it_finds_torchs_libraries_and_gets_the_arguments(self):
        self.put(_versions.minor(torch.__version__))
        ran = self.run_main("--device", "cpu", LD_LIBRARY_PATH="/mine")
        self.assertEqual(f"{LIBRARIES}:/mine --device cpu\n", ran.stdout, ran.stderr)

    def test_none_for_this_torch_is_told(self):
        self.put("2.0")
        ran = self.run_main()
        self.assertEqual(1, ran.returncode)
        self.assertIn(f"has no ferry-calibrate for torch {torch.__version__}", ran.stderr)


if __name__ == "__main__":
    unittest.main()
