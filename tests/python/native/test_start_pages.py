"""The pages in docs/start do what they show.

Each page is followed in an empty folder. A fence ```python title="NAME.py" is a file. In fences
```console and in indented examples a line that begins with `$ ` is a command, and the lines after
it are what it prints: on the page a line `...` stands for any lines, and addresses differ from run
to run. A command that shows nothing is run too, and must end as a command of Ferry's ends.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

from native.support import ferry, torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
START = ROOT / "docs/start"
PROGRAM = pathlib.Path(os.environ.get("FERRY_PROGRAM", "no-ferry"))
PACKAGE = pathlib.Path(ferry.__file__).parents[1]

# Commands that are not run: what each begins with, and why.
SKIPPED = {
    "pip install": "it installs: the package that was built is on the path",
    "python -m venv": "it installs",
    "git clone": "it needs the network",
    "./dev": "it builds",
}
# These take long, and run where FERRY_LONG_PAGES is set.
LONG = {"ferry plan llama3-8b": "it takes 20 seconds of a processor"}
# A race was found; nothing fits in the budget.
ENDS = (0, 1, 3)

FENCE = re.compile(r"^```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
                   re.M | re.S)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:    .*\n|\n(?=    ))+")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


class PageError(Exception):
    """A page shows what does not happen."""


def steps(page):
    """In the page's order: ("file", name, text) and ("command", line, what it prints)."""
    found = [(match.start(), match["kind"], match["title"], match["text"])
             for match in FENCE.finditer(page)]
    # Fences are no indented examples; the places of all else stay.
    rest = FENCE.sub(lambda match: "\n" + "x" * (len(match[0]) - 2) + "\n", page)
    found += [(match.start(), "console", None, textwrap.dedent(match[0]))
              for match in INDENTED.finditer(rest)]
    for _, kind, title, text in sorted(found, key=lambda block: block[0]):
        if title:
            yield "file", title, text
        elif kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                line, _, shown = part.partition("\n")
                while line.endswith("\\"):
                    more, _, shown = shown.partition("\n")
                    line = f"{line[:-1]}{more.removeprefix('> ')}"
                yield "command", line, shown


def matches(shown, printed):
    """Whether that is what the page shows."""
    pattern = "".join(r"(?:.*\n)*" if line.strip() == "..." else
                      ".*".join(map(re.escape, line.rstrip().split(" ..."))) + r" *\n"
                      for line in ADDRESS.sub("ADDRESS", shown).strip("\n").splitlines())
    return re.fullmatch(pattern, ADDRESS.sub("ADDRESS", printed).strip("\n") + "\n") is not None


def environment(folder):
    """`ferry`, and a Python that has the package, on the path."""
    folder.mkdir()
    for name, program in (("ferry", PROGRAM), ("python", sys.executable),
                          ("python3", sys.executable)):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
        script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRY_")}
    return {**kept, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(PACKAGE)}


def reason_to_skip(line):
    reasons = SKIPPED if "FERRY_LONG_PAGES" in os.environ else {**SKIPPED, **LONG}
    return next((why for begin, why in reasons.items() if line.startswith(begin)), None)


def follow(page, folder):
    """Does what the page says, in the folder; returns how many commands ran."""
    environ, ran = environment(folder / "bin"), 0
    here = folder / "here"
    here.mkdir()
    for kind, line, text in steps(page):
        if kind == "file":
            (here / line).write_text(text, encoding="utf-8")
        elif reason_to_skip(line) is None:
            done = subprocess.run(["bash", "-c", line], cwd=here, env=environ, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            ran += 1
            if text.strip() and not matches(text, done.stdout):
                raise PageError(f"$ {line}\nprints\n{done.stdout}\nand the page shows\n{text}")
            if done.returncode not in ENDS:
                raise PageError(f"$ {line}\nends with {done.returncode}:\n{done.stdout}")
    return ran


@unittest.skipUnless(PROGRAM.exists(), "no module: the program ferry was not built")
class StartPages(unittest.TestCase):
    def folder(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        return pathlib.Path(made.name)

    def follow(self, page):
        return follow(textwrap.dedent(page).lstrip("\n"), self.folder())

    def test_each_page_does_what_it_shows(self):
        if "asan" in os.environ.get("LD_PRELOAD", ""):
            self.skipTest("no page is followed under a sanitizer: it takes minutes")
        pinned = re.search(r"^torch==(\d+\.\d+\.)", (ROOT / "python/requirements.in").read_text(),
                           re.M)[1]
        if not torch.__version__.startswith(pinned):
            self.skipTest(f"no module: the pages show what torch {pinned}* prints")
        pages = sorted(START.glob("*.md"))
        self.assertGreaterEqual(len(pages), 4)
        for page in pages:
            with self.subTest(page.name):
                text = page.read_text(encoding="utf-8")
                if "$ ferry run" in text and not PROGRAM.with_name("ferry-run").exists():
                    self.skipTest("no module: ferry run was not built")
                self.assertGreater(follow(text, self.folder()), 0)

    def test_a_page_that_is_true(self):
        self.assertEqual(3, self.follow('''
            # Page

            ```python title="two.py"
            print("one")
            print("a block at 0x7f0000000000")
            ```

                $ python two.py
                one
                a block at 0x7fffffffffff
                $ pip install nothing

            Text.

            ```console
            $ ls | sort
            two.py
            $ printf '1\\n2\\n3 and more\\n' \\
            >   | cat
            ...
            3 ...
            ```
        '''))

    def test_a_page_that_is_not(self):
        for shown in ("one", "one\n    two\n    three", "...\n    one", "two\n    one"):
            with self.subTest(shown), self.assertRaisesRegex(PageError, "and the page shows"):
                self.follow(f"Text:\n\n    $ printf 'one\\ntwo\\n'\n    {shown}\n")
        for line in ("no-such-command", "ferry plan --no-such-option", "python lost.py"):
            with self.subTest(line), self.assertRaisesRegex(PageError, "ends with"):
                self.follow(f"Text:\n\n    $ {line}\n")

    def test_the_package_and_the_program_are_those_that_were_built(self):
        self.assertEqual(2, self.follow(f'''
            Text:

                $ python -c "import torch_ferry; print(torch_ferry.__file__)"
                {PACKAGE}/torch_ferry/__init__.py
                $ ferry --version
                ferry {ferry.__version__}
        '''))


if __name__ == "__main__":
    unittest.main()
