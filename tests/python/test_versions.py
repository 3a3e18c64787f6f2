"""Of the modules in the package the one for this torch and this Python is loaded, and no other.

A module subclasses LibTorch's engine: loaded beside another version it would not fail, but call
wrong functions.
"""

import importlib.machinery
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "python"
HERE = "%d.%d" % sys.version_info[:2]
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]


class Versions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.package = self.folder / "torch_ferry"
        self.package.mkdir()
        for source in (SOURCES / "torch_ferry").glob("*.py"):
            (self.package / source.name).symlink_to(source)

    def build(self, *torches, suffix=SUFFIX):
        (self.package / "_built.py").write_text("VERSION = '0.1.0'\n")
        for torch in torches or ("2.10", "2.11"):
            folder = self.package / f"torch-{torch}"
            folder.mkdir()
            (folder / f"_C{suffix}").write_text("no ELF file")
            # What would be native says which it is.
            (folder / "_C.py").write_text(f"raise SystemExit('loaded for {torch}')\n")

    def install(self, version):
        """A torch that has a version, or that fails as one without its libraries does."""
        (self.folder / "torch.py").write_text(
            f"__version__ = {version!r}\n" if version else "raise ImportError('libc10.so')\n")

    def run_python(self, code, *options):
        return subprocess.run([sys.executable, *options, "-c", textwrap.dedent(code)],
                              cwd=self.folder, capture_output=True, text=True, check=False)

    def refusal(self, *options):
        ran = self.run_python("""
            try:
                import torch_ferry
                torch_ferry.offload
            except ImportError as error:
                print(error)
        """, *options)
        self.assertEqual("", ran.stderr)
        return ran.stdout

    def test_a_torch_that_none_was_built_for(self):
        self.build()
        for other in ("2.9.1+cu128", "2.12.0", "2.1.1", "3.11.0"):
            self.install(other)
            said = self.refusal()
            self.assertIn(f"was built for torch 2.10 or 2.11; this is torch {other}. ", said)
            self.assertIn("pip install 'torch==2.11.*'", said)
            self.assertIn("pip install --no-build-isolation .", said)

    def test_the_folder_is_the_one_of_the_minor_version(self):
        self.build("2.9", "2.10", "2.11")
        for version, minor in (("2.11.0", "2.11"), ("2.11.7+cu130", "2.11"),
                               ("2.10.0a0+git70d99e9", "2.10")):
            self.install(version)
            ran = self.run_python("""
                import sys
                sys.path.insert(0, "torch_ferry")  # by itself
                import _versions
                print(_versions.torches(_versions.PACKAGE))
                print(_versions.folder_for_torch(_versions.PACKAGE, "0.1.0").name)
            """)
            self.assertEqual(f"['2.9', '2.10', '2.11']\ntorch-{minor}\n", ran.stdout, ran.stderr)

    def test_a_python_that_none_was_built_for(self):
        self.build("2.11", suffix=".cpython-399-x86_64-linux-gnu.so")
        self.install("2.11.0")
        self.assertIn(f"was built for torch 2.11 and Python 3.99; this is Python {HERE}. ",
                      self.refusal())

    def test_a_torch_that_cannot_be_imported(self):
        self.build()
        self.install(None)
        said = self.refusal()
        self.assertIn("torch cannot be imported (libc10.so). ", said)
        self.assertIn("pip install --force-reinstall 'torch==2.11.*'", said)

    def test_without_torch_what_needs_none_works_and_the_rest_says_so(self):
        self.build()
        said = self.refusal("-S")
        self.assertIn("torch_ferry 0.1.0 needs torch 2.10 or 2.11, and torch is not installed. ",
                      said)
        ran = self.run_python("import torch_ferry.summary; print('read')", "-S")
        self.assertEqual("read\n", ran.stdout, ran.stderr)

    def test_a_source_tree_has_no_module_and_needs_no_torch(self):
        self.install(None)
        ran = self.run_python("import torch_ferry.summary; print('read')")
        self.assertEqual("read\n", ran.stdout, ran.stderr)


if __name__ == "__main__":
    unittest.main()
