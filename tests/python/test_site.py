"""The pages as a site (docs/site): what is generated is current, and each page has its place."""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "docs/site"
sys.path.insert(0, str(SITE))
import build  # noqa: E402
import commands  # noqa: E402
import command_help  # noqa: E402
import pages_input  # noqa: E402
import python_api  # noqa: E402

HELP = """\
What it is for
Usage: ferry plan [OPTIONS] program

Positionals:
  program TEXT REQUIRED       What it reads

Options:
  -h,--help                   Print this help message and exit
  -o,--output FILE REQUIRED Excludes: --csv --json
                              Where it goes
  --cards N:INT in [1 - 8]=2  How many
  --log                       Keep a | log
  --policy NAME ...           Names


More:
  --bits N:INT in [0 - 99999999999] Needs: --log
                              So many


Text of two
lines.

Examples:
  ferry plan a      one
    ferry plan b
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, **texts):
        for name, text in texts.items():
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")


class Navigation(unittest.TestCase):
    def test_each_page_of_docs_is_in_it(self):
        text = (SITE / "mkdocs.yml").read_text(encoding="utf-8")
        listed = re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", text.partition("\nnav:\n")[2], re.M)
        pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
        self.assertEqual(pages, {page for page in listed if not page.startswith("repository/")},
                         "docs/site/mkdocs.yml lists each page of docs/ in its navigation")
        for page in listed:
            if page.startswith("repository/"):
                self.assertTrue((ROOT / page.removeprefix("repository/")).exists(), page)
        self.assertEqual(len(listed), len(set(listed)))


class Input(Folder):
    def site(self, **pages):
        files = {"docs/index.md", "docs/guides/b.md", "README.md", "sim/README.md", "sim/a.h",
                 "docs/picture.svg", *pages}
        for name, text in {**dict.fromkeys(files, "# Title\n"), **pages}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return pages_input.Site(self.folder, files)

    def page(self, text, path="docs/guides/b.md"):
        return self.site(**{path: text}).page(path)

    def test_links_follow_the_pages(self):
        self.assertEqual(
            "[i](../index.md#a) [r](../repository/README.md) [h](../repository/sim/a.h.md) "
            "![p](../picture.svg) [f](../repository/sim/README.md) [w](https://a.org/b.md) [t](#t)",
            self.page("[i](../index.md#a) [r](../../README.md) [h](../../sim/a.h) "
                      "![p](../picture.svg) [f](../../sim/) [w](https://a.org/b.md) [t](#t)"))
        self.assertEqual("[i](../guides/b.md) [x](../index.md)", self.page(
            "[i](docs/guides/b.md) [x](docs/)", "README.md"))

    def test_links_in_examples_and_links_to_nothing_stay(self):
        for text in ("[lost](lost.md)", "`[i](../index.md)`", "Text:\n\n    [i](../index.md)",
                     "```\n[i](../index.md)\n```", "````\n```\n````\n[lost](a.md)"):
            self.assertEqual(text, self.page(text))

    def test_lists_are_those_of_github(self):
        self.assertEqual("Text:\n\n* one\n    more\n\n    ```\n    x\n    ```\n* two\n\nText",
                         self.page("Text:\n* one\n  more\n\n  ```\n  x\n  ```\n* two\n\nText"))

    def test_a_file_that_a_page_links_to_is_a_page(self):
        site = self.site(**{"docs/guides/b.md": "[a](../../sim/a.h)",
                            "sim/a.h": "// ````\nint a;\n"})
        site.write(self.folder / "out")
        shown = (self.folder / "out/repository/sim/a.h.md").read_text(encoding="utf-8")
        self.assertIn("\n# sim/a.h\n\n`````cpp\n// ````\nint a;\n`````\n", shown)
        self.assertIn("exclude: true", shown)
        self.assertTrue((self.folder / "out/guides/b.md").exists())

    def test_what_a_page_would_load_is_seen(self):
        bad = ('<script src="https://a.org/b.js"></script>', "<img src=//a.org/b.png>",
               '<link rel="stylesheet" href="https://a.org/c.css">', "url(https://a.org/d.woff)")
        good = ('<script src="b.js"></script>', '<a href="https://a.org">', "url(d.woff)",
                '<link rel="canonical" href="https://a.org">')
        for number, text in enumerate(bad + good):
            (self.folder / f"{number}.html").write_text(text, encoding="utf-8")
        self.assertEqual([f"{number}.html" for number in range(len(bad))],
                         [str(path) for path, _ in build.loaded(self.folder)])


class Commands(Folder):
    def test_a_help_text_is_understood(self):
        found = command_help.read(HELP, ("plan",))
        self.assertEqual("What it is for", found.about)
        self.assertEqual(["program"], [row.names[0] for row in found.sections["Positionals"]])
        output = found.options["-o"]
        self.assertIs(output, found.options["--output"])
        self.assertEqual(("FILE", True, ["--csv", "--json"], "Where it goes"),
                         (output.value, output.required, output.excludes, output.text))
        self.assertEqual("N:INT in [1 - 8]=2", found.options["--cards"].value)
        self.assertEqual("", found.options["--log"].value)
        self.assertTrue(found.options["--policy"].many)
        self.assertEqual(["--log"], found.options["--bits"].needs)
        self.assertTrue(found.rest.startswith("Text of two\nlines.\n\nExamples:"))

    def test_its_section(self):
        section = commands.section(command_help.read(HELP, ("plan",)))
        output = "| `-o`, `--output FILE` | Where it goes. Required. Not with `--csv`, `--json` |"
        for line in ("## ferry plan", "What it is for.", "Usage: `ferry plan [OPTIONS] program`",
                     "| `program` | What it reads |", output,
                     "| `--cards N` | How many. From 1 to 8. Default: `2` |",
                     "| `--log` | Keep a \\| log |", "| `--policy NAME ...` | Names |",
                     "More:", "| `--bits N` | So many. Needs `--log` |", "Text of two lines.",
                     "ferry plan a      one", "  ferry plan b"):
            self.assertIn(line, section.split("\n"))
        self.assertNotIn("--help", section)

    def test_a_row_that_is_not_understood_is_no_row(self):
        with self.assertRaisesRegex(ValueError, "expected an option or a command"):
            command_help.row("--odd <thing> & more", "text")

    def test_a_page_that_is_out_of_date_is_seen(self):
        program = self.folder / "ferry"
        program.write_text(f"#!/bin/sh\ncat <<'TEXT'\n{HELP}TEXT\n", encoding="utf-8")
        program.chmod(0o755)
        page, said = self.folder / "page.md", io.StringIO()
        arguments = [str(program), "--page", str(page)]
        with contextlib.redirect_stdout(said):
            self.assertEqual(1, commands.main([*arguments, "--check"]))
            self.assertEqual(0, commands.main(arguments))
            self.assertEqual(0, commands.main([*arguments, "--check"]))
            page.write_text(page.read_text("utf-8").replace("How many", "How much"), "utf-8")
            self.assertEqual(1, commands.main([*arguments, "--check"]))
        self.assertIn(f"    python3 docs/site/commands.py {program}\n", said.getvalue())
        self.assertIn("+| `--cards N` | How many.", said.getvalue())


class PythonReference(Folder):
    def test_it_is_current(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = python_api.main(["--check"])
        self.assertEqual(0, status, said.getvalue())

    def entry(self, source, name="f"):
        self.write(a=source)
        return python_api.entry(python_api.Package(self.folder), "a", name, f"a.{name}")

    def test_a_function(self):
        self.assertEqual('### a.f()\n\n```py\na.f(x, *, depth=2)\n```\n\nMakes it.\n\n'
                         '| argument | meaning |\n|---|---|\n'
                         '| `x` | what it is made of, and more |\n'
                         '| `depth` | how deep |\n\n```python\nf(x)\n```', self.entry('''
def f(x, *, depth=2):
    """Makes it.

    x      what it is made of,
           and more
    depth  how deep

        f(x)
    """
'''))

    def test_a_class_with_its_bases_and_without_old_names(self):
        self.write(b="class B:\n"
                     "    def __init__(self, y): pass\n"
                     "    def m(self):\n"
                     "        '''Base's.'''\n")
        self.assertEqual("### class a.A\n\n```py\na.A(y)\n```\n\nIt is.\n\n"
                         "| method | what it does |\n|---|---|\n| `n(k)` | Does. |\n"
                         "| `m()` | Base's. |", self.entry('''
from .b import B
class A(B):
    """It is."""
    def n(self, k):
        """Does."""
    def undocumented(self): pass
    def _private(self):
        """No."""
    @renamed("n")
    def old(self):
        """No."""
''', "A"))

    def test_a_change_of_the_sources_is_seen(self):
        for path in python_api.PACKAGE.glob("*.py*"):
            (self.folder / path.name).write_bytes(path.read_bytes())
        same = python_api.pages(self.folder)
        self.assertEqual(python_api.pages(), same)
        source = self.folder / "guards.py"
        source.write_text(source.read_text("utf-8").replace("*, keep_head=", "*, keeps_head="),
                          encoding="utf-8")
        self.assertNotEqual(same, python_api.pages(self.folder))


if __name__ == "__main__":
    unittest.main()
