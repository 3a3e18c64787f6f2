"""The examples of the pages name what there is.

    python3 tests/cli/pages/page_examples.py FERRY [ROOT]

In README.md and in docs/ each line `ferry …` of an example, and each `ferry …` within a sentence,
names a command and options that the program FERRY has; each `./dev NAME` is one of dev's. Each
example in Python can be parsed, takes public names from the package torch_ferry, and passes
arguments that there are. Each ferry::NAME of C++ is in a header. Before the pages are judged, a bad
one is.
"""

import ast
import pathlib
import re
import shlex
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "docs/site"))
import command_help  # noqa: E402
import python_api  # noqa: E402

FENCE = re.compile(r"^( *)(`{3,})(\w*)[^\n]*\n(.*?)^\1\2$", re.M | re.S)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:    .*\n|\n(?=    ))+")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
PYTHON = re.compile(r"^(?:import \w|from [\w.]+ import |with \w+\.\w+\(|\w+ = ferry\.)", re.M)
CPP = re.compile(r"#include|::|;\s*(?://|$)", re.M)
SHELL = {"", "bash", "console", "sh", "shell", "text"}
WRAPPERS = {"$", "./dev", "mpirun", "time", "torchrun"}
OPERATORS = re.compile(r"[|&;<>()]+")
PLACEHOLDER = re.compile(r"[A-Z][A-Z.…]*|…|\.\.\.|\[.*")
HEADERS = ("real", "verify", "shared", "cmake")  # and the names of targets


def blocks(page):
    """(line, kind, text) of each example; an indented one has the kind ""."""
    for match in FENCE.finditer(page):
        yield page.count("\n", 0, match.start(4)) + 1, match[3], textwrap.dedent(match[4])
    rest = FENCE.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), page)
    for match in INDENTED.finditer(rest):
        yield page.count("\n", 0, match.start()) + 1, "", textwrap.dedent(match[0])


def spans(page):
    """(line, text) of each `span`, outside examples."""
    rest = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), page)
    rest = INDENTED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), rest)
    for match in SPAN.finditer(rest):
        yield page.count("\n", 0, match.start()) + 1, " ".join(match[1].split())


def shell_lines(text):
    """(line, command) of a block: where it has prompts, only what stands behind one."""
    prompts = any(line.startswith("$ ") for line in text.split("\n"))
    begun = None
    for number, line in enumerate(text.split("\n")):
        if begun is None and prompts and not line.startswith("$ "):
            continue
        begun = (number, line) if begun is None else (begun[0], f"{begun[1]} {line}")
        if begun[1].endswith("\\"):
            begun = (begun[0], begun[1][:-1])
        else:
            yield begun
            begun = None


def words_of(command):
    """Of each `ferry …` in a line the words behind `ferry`."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # an apostrophe of the text beside it
        words = command.split()
    simple = [[]]
    for word in words:
        if OPERATORS.fullmatch(word):
            simple.append([])
        else:
            simple[-1].append(word)
    for each in simple:
        for at, word in enumerate(each):
            if word == "ferry" or word.endswith("/ferry"):
                yield each[at + 1:]
            if word not in WRAPPERS and not re.match(r"-|\d+$|\w+=", word):
                break


class Commands:
    """What the program has."""

    def __init__(self, ferry):
        self.helps = dict(command_help.all_commands(ferry))

    def fault(self, words):
        """What is wrong with `ferry WORDS`, or None."""
        at, command = 0, ()
        while at < len(words) and (*command, words[at]) in self.helps:
            command, at = (*command, words[at]), at + 1
        helped = self.helps[command]
        if at < len(words) and not command and not words[at].startswith("-"):
            no_name = PLACEHOLDER.fullmatch(words[at]) or words[at].endswith(":")  # or a message
            return None if no_name else f"there is no command `ferry {words[at]}`"
        inner = [each for words, each in self.helps.items()
                 if words[:-1] == command and len(words) > 1]
        if helped is None or None in inner:  # not built here
            return None
        options = dict(helped.options)
        for each in inner:  # `ferry train --plan`: of whatever model
            options |= each.options
        return self._options(command, options, words[at:])

    def _options(self, command, options, words):
        for at, word in enumerate(words):
            before = options.get(words[at - 1]) if at else None
            if before is not None and before.value and not word.startswith("--"):
                continue  # it is that option's
            if command == ("run",) and (word in ("-m", "-c", "--") or not word.startswith("-")):
                return None  # the script; what follows is its own
            if command == ("calibrate",) and self.helps.get(("train", word)):
                options |= self.helps["train", word].options
            if word == "--":
                return None
            if not re.match(r"--?[a-zA-Z]", word):
                continue
            name = re.split(r"[=…]", word)[0].rstrip(".,:`")
            name = name if name.startswith("--") else name[:2]
            if name not in options and name not in ("--help", "-h"):
                return f"`ferry {' '.join(command)}` has no option {name}"
        return None


class Python:
    """What the package torch_ferry has for its users."""

    def __init__(self, root):
        self.package = python_api.Package(root / "python/torch_ferry")
        self.public = self.package.public()
        self.modules = {path.stem for path in (root / "python/torch_ferry").glob("*.py")
                        if not path.stem.startswith("_")}

    def has(self, name):
        return name in self.public or name in self.modules or name == "__version__"

    def faults(self, code):
        """(line, fault) of an example."""
        try:
            tree = ast.parse(code)
        except SyntaxError as error:
            yield error.lineno or 1, f"no Python: {error.msg}"
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (
                    node.value.id in ("ferry", "torch_ferry")) and not self.has(node.attr):
                yield node.lineno, f"torch_ferry has no {node.attr}"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch_ferry"):
                yield from self._imported(node)
            if isinstance(node, ast.Call):
                yield from self._called(node)

    def _imported(self, node):
        module = node.module.removeprefix("torch_ferry").lstrip(".")
        if module and module not in self.modules:
            yield node.lineno, f"torch_ferry has no module {module}"
            return
        for alias in node.names:
            known = self.package.find(module, alias.name) if module else self.has(alias.name)
            if not known:
                yield node.lineno, f"{node.module} has no {alias.name}"

    def _called(self, node):
        """Keywords of a call of the package's own function."""
        name = ast.unparse(node.func).removeprefix("torch_ferry.").removeprefix("ferry.")
        if name == ast.unparse(node.func) or self.public.get(name, "_C") == "_C":
            return
        arguments = self.package.arguments(*self.package.find(self.public[name], name))
        taken = set(python_api.names_in(arguments))
        if arguments.kwarg and name in ("execute", "offload_activations"):  # they are `offload`'s
            taken |= set(python_api.names_in(self.package.arguments(
                *self.package.find("offload", "Offload"))))
        elif arguments.kwarg:
            return
        for keyword in node.keywords:
            if keyword.arg and keyword.arg not in taken:
                yield node.lineno, f"torch_ferry.{name} has no argument {keyword.arg}"


class Pages:
    def __init__(self, ferry, root):
        self.commands = Commands(ferry)
        self.python = Python(root)
        self.headers = "".join(path.read_text(encoding="utf-8") for folder in HEADERS
                               for path in sorted((root / folder).rglob("*.[hct]*"))
                               if path.suffix in (".h", ".cmake", ".txt"))
        dev = (root / "dev").read_text(encoding="utf-8")
        self.dev = {name for line in re.findall(r"^\./dev (\w+(?: \| \w+)*)", dev, re.M)
                    for name in line.split(" | ")} | {"ferry"}
        self.seen = 0

    def faults(self, page):
        """(line, fault) of a page's text."""
        for line, kind, text in blocks(page):
            if kind == "python" or (not kind and PYTHON.search(text) and not CPP.search(text)):
                self.seen += 1
                for at, fault in self.python.faults(text):
                    yield line + at - 1, fault
            elif kind in SHELL:
                for at, command in shell_lines(text):
                    yield from ((line + at, fault) for fault in self._of_command(command))
            yield from ((line, fault) for fault in self._of_cpp(text))
        for line, text in spans(page):
            if text.startswith(("ferry ", "./dev ")):
                yield from ((line, fault) for fault in self._of_command(text))
            for name in re.findall(r"(?<![\w.])(?:torch_)?ferry\.(\w+)\b(?!\.\w+:)", text):
                if re.match(r"(?:torch_ferry\.|ferry\.\w+\()", text) and not self.python.has(name):
                    yield line, f"torch_ferry has no {name}"
            yield from ((line, fault) for fault in self._of_cpp(text))

    def _of_command(self, command):
        for name in re.findall(r"(?<!\S)\./dev (\w+)", command):
            if name not in self.dev:
                yield f"there is no ./dev {name}"
        for words in words_of(command):
            self.seen += 1
            fault = self.commands.fault(words)
            if fault:
                yield fault

    def _of_cpp(self, text):
        for name in re.findall(r"\bferry::((?:\w+::)*\w+)", text):
            for part in name.split("::"):
                if not re.search(rf"\b{part}\b", self.headers):
                    yield f"no header has {part} of ferry::{name}"


BAD = '''# A bad page

    $ ferry plane gpt2
    ferry plone, which is output
    $ ferry plan gpt2 --budgets 7GiB | head
    $ FERRY_X=1 ./dev ferry train gpt --policy offload --no-such

Text with `ferry check --lieks run.jsonl`, `ferry.offlaod()`, `ferry::Offlaod`, `./dev tset`.

    ferry run --sede 7 train.py --no-such

```python
import torch_ferry as ferry
from torch_ferry.transformers import OfloadCallback

with ferry.ofload(), ferry.offload(widow="64MiB"):
    pass
```

```python
loss = model(x
```
'''
GOOD = '''# A good page

    $ ferry plan gpt2 --budget=7GiB -o gpt2.plan   # the model's plan
    ferry plone, which is output
    $ ferry run --seed 7 train.py --no-such
    $ mpirun -n 4 ferry sweep a.toml -o a.jsonl && ferry COMMAND --help

Text with `ferry check`, `ferry --version`, `ferry.offload(window="1MiB")`, `ferry::Offload`,
`./dev test python`, `./dev ferry plan`.

```python
import torch_ferry as ferry
from torch_ferry.transformers import OffloadCallback

with ferry.execute(plan, disk="/var/tmp"):
    loss = model(x)
```
'''
# The lines of the bad page with a fault; one that has LibTorch's commands has two more.
BAD_LINES = [3, 5, 8, 8, 8, 8, 14, 16, 16, 21]
BAD_WITH_TORCH = [6, 10]


def self_test(pages):
    """What is wrong with the judge."""
    expected = list(BAD_LINES)
    expected += [line for line, command in zip(BAD_WITH_TORCH, ("train", "run"))
                 if pages.commands.helps[(command,)] is not None]
    found = sorted(line for line, _ in pages.faults(BAD))
    if found != sorted(expected):
        yield f"the bad page has faults in lines {sorted(expected)}, and these were found: {found}"
    for line, fault in pages.faults(GOOD):
        yield f"the good page has a fault in line {line}: {fault}"


def main(ferry, root=ROOT):
    root = pathlib.Path(root)
    pages = Pages(ferry, root)
    missed = list(self_test(pages))
    if missed:
        print("\n".join(f"self-test: {line}" for line in missed))
        return 1
    pages.seen, status = 0, 0
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    for path in paths:
        for line, fault in sorted(pages.faults(path.read_text(encoding="utf-8"))):
            print(f"{path.relative_to(root)}:{line}: {fault}")
            status = 1
    print(f"{len(paths)} pages, {pages.seen} commands and examples in Python")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
