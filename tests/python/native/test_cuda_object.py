"""CUDA is an object beside the module, loaded where torch has CUDA, and without a call of CUDA's.

A process that imports the package may still fork, and choose its devices afterwards.
"""

import pathlib
import subprocess
import sys
import unittest

from native.support import ferry, torch

OBJECT = pathlib.Path(ferry._C.__file__).with_name("_C_cuda.so")


@unittest.skipUnless(OBJECT.exists(), "no GPU: this torch has no CUDA to build with")
class Cuda(unittest.TestCase):
    def run_python(self, code):
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             cwd=pathlib.Path(ferry.__file__).parents[1], check=False)
        self.assertEqual(0, ran.returncode, ran.stderr)
        return ran.stdout

    def test_it_is_loaded_and_cuda_is_not_touched(self):
        self.assertEqual("False\n", self.run_python(
            "import torch, torch_ferry; print(torch.cuda.is_initialized())"))

    def test_it_registers_with_the_module_and_not_with_a_core_of_its_own(self):
        # Without it the module would say that it was linked without CUDA.
        if torch.cuda.is_available():
            ferry.offload(device="cuda")
        else:
            with self.assertRaisesRegex(RuntimeError, "no CUDA device can be used here"):
                ferry.offload(device="cuda")

    def test_a_torch_without_cuda_does_not_ask_for_its_libraries(self):
        self.assertEqual("False\n", self.run_python(
            "import torch; torch.version.cuda = None\n"
            "from torch_ferry import _cuda; print(_cuda.load())"))


if __name__ == "__main__":
    unittest.main()
