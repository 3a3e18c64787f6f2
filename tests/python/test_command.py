"""The command `ferry` that a wheel installs: it becomes the program inside the package."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND = pathlib.Path(__file__).resolve().parents[2] / "python/ferry_command/__init__.py"


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(COMMAND, self.folder / "ferry_command.py")

    def install(self, program):
        """A package that says when it is imported, which would bring torch and take seconds."""
        package = self.folder / "torch_ferry"
        (package / "bin").mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('imported')\n")
        if program:
            (package / "bin/ferry").write_text(f"#!/bin/sh\n{program}\n")
            (package / "bin/ferry").chmod(0o755)

    def ran(self, *arguments, **env):
        return subprocess.run(
            [sys.executable, "-c", "import ferry_command; ferry_command.main()", *arguments],
            cwd=self.folder, text=True, check=False, env=env, capture_output=True)

    def test_arguments_output_and_exit_code_are_the_programs(self):
        self.install('printf "%s|" "$@"; exit 3')
        ran = self.ran("plan", "a b", "--json")
        self.assertEqual(("plan|a b|--json|", "", 3), (ran.stdout, ran.stderr, ran.returncode))

    def test_scripts_run_with_the_python_that_it_is_of(self):
        self.install('printf "%s" "$FERRY_PYTHON"')
        self.assertEqual(sys.executable, self.ran("run").stdout)
        self.assertEqual("/other", self.ran("run", FERRY_PYTHON="/other").stdout)

    def test_without_the_program_or_the_package_it_says_so(self):
        self.assertIn("does not have the package torch_ferry", self.ran().stderr)
        self.install(None)
        ran = self.ran("--version")
        self.assertRegex(ran.stderr, "^ferry: cannot run .*/torch_ferry/bin/ferry: No such file")
        self.assertEqual(1, ran.returncode)


if __name__ == "__main__":
    unittest.main()
