"""The types that are checked in are those of the module."""

import importlib.util
import unittest

import make_stubs
from native.support import ferry  # noqa: F401

if importlib.util.find_spec("pybind11_stubgen") is None:
    raise unittest.SkipTest("no trl: nor pybind11-stubgen, which is installed with it")


class Stubs(unittest.TestCase):
    def test_they_are_what_the_script_writes(self):
        self.assertEqual(make_stubs.stubs(), make_stubs.STUBS.read_text(encoding="utf-8"),
                         "PYTHONPATH=build/dev/python python tests/python/make_stubs.py")


if __name__ == "__main__":
    unittest.main()
