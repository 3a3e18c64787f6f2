"""release/symbols.py: what a library uses of PyTorch and PyTorch does not have."""

import pathlib
import sys
import tempfile
import unittest

import torch
from native.support import ferry

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "release"))
import symbols  # noqa: E402

MODULE = pathlib.Path(ferry._C.__file__)


class Symbols(unittest.TestCase):
    def test_the_module_finds_all_in_its_torch(self):
        self.assertEqual(symbols.missing(MODULE, pathlib.Path(torch.__file__).parent), [])

    def test_without_the_libraries_all_are_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            lost = symbols.missing(MODULE, pathlib.Path(folder))
        self.assertIn("c10::TensorImpl::", "\n".join(lost))
        self.assertNotIn("std::", "\n".join(name.split("(")[0] for name in lost))


if __name__ == "__main__":
    unittest.main()
