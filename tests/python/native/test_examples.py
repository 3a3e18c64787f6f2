"""The scripts in examples/python run, and offload."""

import os
import pathlib
import subprocess
import sys
import unittest

from native.support import ferry

try:
    import accelerate  # noqa: F401
    import transformers  # noqa: F401
except ImportError as error:
    raise unittest.SkipTest(f"no transformers: {error}")

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "examples/python"
PACKAGE = pathlib.Path(ferry.__file__).parents[1]


class Examples(unittest.TestCase):
    def test_each_runs_and_moves_something(self):
        scripts = sorted(SCRIPTS.glob("*.py"))
        self.assertGreaterEqual(len(scripts), 3)
        for script in scripts:
            with self.subTest(script.name):
                ran = subprocess.run([sys.executable, script], capture_output=True, text=True,
                                     env={**os.environ, "PYTHONPATH": str(PACKAGE)}, check=False)
                self.assertEqual(0, ran.returncode, ran.stderr)
                last = ran.stdout.splitlines()[-1]
                self.assertRegex(last, r": [1-9]\d* copied to the host")


if __name__ == "__main__":
    unittest.main()
