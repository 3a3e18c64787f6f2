"""`ferry calibrate` of the package calls the program for this torch."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from torch_ferry import _versions

PRINTS = r"""
#include <stdio.h>
int main(int count, char** words) {
  for (int i = 0; i < count; ++i) printf("%s\n", words[i]);
  fflush(stdout);
  return words[count] == 0 ? 3 : 4;
}
"""


@unittest.skipIf(torch.version.cuda is None, "torch was built without CUDA")
class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.package = pathlib.Path(folder.name)

    def put(self, minor):
        library = self.package / f"torch-{minor}" / "_calibrate.so"
        library.parent.mkdir()
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-", "-o",
                        library], input=PRINTS, text=True, check=True)

    def calibrate(self, *arguments):
        code = ("import pathlib; from torch_ferry import calibrate as c; given = c.program\n"
                f"c.program = lambda: given(pathlib.Path({str(self.package)!r})); c.main()")
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True,
                              text=True, check=False)

    def test_it_is_the_program_for_this_torch_with_its_arguments_and_exit_code(self):
        self.put(_versions.minor(torch.__version__))
        ran = self.calibrate("--device", "cpu")
        self.assertEqual("ferry-calibrate\n--device\ncpu\n", ran.stdout, ran.stderr)
        self.assertEqual(3, ran.returncode)

    def test_none_for_this_torch_is_told(self):
        self.put("2.0")
        ran = self.calibrate()
        self.assertEqual(7, ran.returncode)
        self.assertIn(f"cannot calibrate with torch {torch.__version__}: there is no", ran.stderr)


if __name__ == "__main__":
    unittest.main()
