"""A module that was built for another torch or another Python is refused before it is loaded.

It subclasses LibTorch's engine: loaded beside another version it would not fail, but call wrong
functions.
"""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "python"
HERE = "%d.%d" % sys.version_info[:2]


class Versions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.package = self.folder / "torch_ferry"
        self.package.mkdir()
        for source in (SOURCES / "torch_ferry").glob("*.py"):
            (self.package / source.name).symlink_to(source)
        # What is native here only says that it was loaded.
        (self.package / "_C.py").write_text("raise SystemExit('loaded')\n")

    def build(self, torch="2.11", python=HERE):
        (self.package / "_built.py").write_text(
            f"VERSION, TORCH, PYTHON = '0.1.0', '{torch}', '{python}'\n")

    def install(self, version):
        """A torch that has a version, or that fails as one without its libraries does."""
        (self.folder / "torch.py").write_text(
            f"__version__ = {version!r}\n" if version else "raise ImportError('libc10.so')\n")

    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=self.folder,
                              capture_output=True, text=True, check=False)

    def refusal(self):
        ran = self.run_python("""
            try:
                import torch_ferry
            except ImportError as error:
                print(error)
        """)
        self.assertEqual("", ran.stderr)
        return ran.stdout

    def test_another_minor_version_of_torch(self):
        self.build()
        for other in ("2.10.1+cu128", "2.12.0", "2.1.1", "3.11.0"):
            self.install(other)
            said = self.refusal()
            self.assertIn(f"was built for torch 2.11 and Python {HERE}; this is torch {other}. ",
                          said)
            self.assertIn("pip install 'torch==2.11.*'", said)
            self.assertIn("pip install --no-build-isolation .", said)

    def test_the_same_minor_version_is_taken_whatever_comes_after_it(self):
        self.build()
        for same in ("2.11.0", "2.11.7+cu130", "2.11.0a0+git70d99e9"):
            self.install(same)
            ran = self.run_python("""
                import sys
                sys.path.insert(0, "torch_ferry")  # these two by themselves
                import _built, _versions
                _versions.require(_built)
                print("taken")
            """)
            self.assertEqual("taken\n", ran.stdout, ran.stderr)

    def test_another_python(self):
        self.build(python="3.99")
        self.install("2.11.0")
        self.assertIn(f"and Python 3.99; this is Python {HERE}. ", self.refusal())

    def test_no_torch(self):
        self.build()
        self.install(None)
        said = self.refusal()
        self.assertIn("torch cannot be imported (libc10.so). ", said)
        self.assertIn("Install it: pip install 'torch==2.11.*'", said)

    def test_a_source_tree_has_no_module_and_needs_no_torch(self):
        self.install(None)
        ran = self.run_python("import torch_ferry.summary; print('read')")
        self.assertEqual("read\n", ran.stdout, ran.stderr)


class Requirement(unittest.TestCase):
    """What a wheel depends on is asked before anything is built."""

    def ask(self, state, version=None):
        with tempfile.TemporaryDirectory() as folder:
            if version:
                torch = pathlib.Path(folder) / "torch"
                torch.mkdir()
                (torch / "__init__.py").write_text("raise SystemExit('imported, for seconds')\n")
                (torch / "version.py").write_text(f"__version__ = '{version}'\n")
            return subprocess.run(
                [sys.executable, "-S", "-c", f"""if True:
                    import sys
                    sys.path += [{str(SOURCES)!r}, {folder!r}]
                    import torch_requirement
                    torch_requirement.build_state({state!r})
                    print(torch_requirement.dynamic_metadata({{}}, {{}})["dependencies"])
                """], capture_output=True, text=True, check=False)

    def test_a_wheel_is_for_the_minor_version_that_is_here(self):
        self.assertEqual("['torch==2.9.*']\n", self.ask("wheel", "2.9.1+cu128").stdout)

    def test_without_torch_a_wheel_is_refused_and_sources_are_packed(self):
        self.assertIn("pip install --no-build-isolation .", self.ask("metadata_wheel").stderr)
        self.assertEqual("['torch']\n", self.ask("sdist").stdout)


if __name__ == "__main__":
    unittest.main()
