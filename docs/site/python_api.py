"""Writes docs/reference/python.md and python-libraries.md from the docstrings and signatures of the
package torch_ferry.

    python3 docs/site/python_api.py            writes the pages
    python3 docs/site/python_api.py --check    exit 1 where a page is another

The sources are parsed and not imported: this needs no torch. Public are the names that the package
imports for its users, and those of the modules below.
"""

import argparse
import ast
import difflib
import inspect
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/torch_ferry"
PAGES = ROOT / "docs/reference"
HEADS = {"python.md": """# Python API

    import torch_ferry as ferry

Do not edit: `python3 docs/site/python_api.py` writes this page from `python/torch_ferry`. Doors
into other libraries are [on a page of their own](python-libraries.md).
""", "python-libraries.md": """# Python API for other libraries

Do not edit: `python3 docs/site/python_api.py` writes this page from `python/torch_ferry`. All else
is [in the Python API](python.md).
"""}
# Modules to import by name, and their public names where the module has no `__all__`.
LIBRARIES = ("transformers", "trl", "lightning", "axolotl")
MODULES = {
    **dict.fromkeys(LIBRARIES),
    "capture": ["capture", "cuda", "fake_mode"],
    "program": ["load", "Program", "ProgramError", "CaptureError"],
    "summary": [],
}
# Functions that hand all their arguments on to a class.
SIGNATURES = {("offload", "offload"): "Offload"}
SAME = {"lightning.OffloadCallback": "transformers.OffloadCallback"}
# The exceptions that C++ raises have no docstrings.
RAISED = {
    "PlanMismatch": "The model saves another tensor than its plan says.",
    "SegmentMismatch": "A checkpointed call saves another number of tensors than its plan says.",
    "CheckpointError": "A recompute saved other tensors than forward did.",
    "DiskError": "The file that tensors go to cannot be written or read.",
    "DiskFull": "The file that tensors go to has no room left.",
}
STATISTICS = ("OffloadStatistics", "CheckpointStatistics", "ReplayStatistics")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WIDTH = 100

ITEM = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*)(?: {2,}(\S.*))?")
ARGUMENT = re.compile(r"    (\w+): (.*)")


class Package:
    """What the sources define, by module."""

    def __init__(self, folder):
        self.folder = folder
        self._parsed = {}

    def module(self, name):
        if name not in self._parsed:
            path = self.folder / f"{name}.py"
            path = path if path.exists() else self.folder / f"{name}.pyi"
            self._parsed[name] = ast.parse(path.read_text(encoding="utf-8"), str(path))
        return self._parsed[name]

    def imports(self, name):
        """{name: (module, its name there)} of what a module imports from the package."""
        return {alias.asname or alias.name: (node.module, alias.name)
                for node in ast.walk(self.module(name))
                if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
                for alias in node.names}

    def public(self):
        """{name: module} of what `torch_ferry` itself has, without old names."""
        return {name: module for name, (module, _) in self.imports("__init__").items()
                if not name.startswith("_") and not is_old(self.find(module, name)[1])}

    def names_of(self, module):
        """The public names of a module."""
        if MODULES[module] is not None:
            return MODULES[module]
        for node in self.module(module).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return ast.literal_eval(node.value)
        raise SystemExit(f"torch_ferry.{module} has no __all__")

    def find(self, module, name):
        """(module, node) of a definition, where it is, or None."""
        for node in self.module(module).body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name:
                return module, node
        if name in self.imports(module):
            return self.find(*self.imports(module)[name])
        return None

    def classes(self, module, node):
        """The class and those of the package that it derives from."""
        yield module, node
        for base in node.bases:
            found = self.find(module, ast.unparse(base))
            if found and isinstance(found[1], ast.ClassDef):
                yield from self.classes(*found)

    def arguments(self, module, node):
        """An ast.arguments of the call, without `self`."""
        if (module, node.name) in SIGNATURES:
            return self.arguments(*self.find(module, SIGNATURES[module, node.name]))
        if isinstance(node, ast.ClassDef):
            for _, each in self.classes(module, node):
                for method in each.body:
                    if isinstance(method, FUNCTIONS) and method.name == "__init__":
                        return without_self(method.args)
            return ast.parse("def f(): pass").body[0].args
        return node.args


def without_self(arguments):
    made = ast.parse(f"def f({ast.unparse(arguments)}): pass").body[0].args
    (made.posonlyargs or made.args).pop(0)
    if made.kwarg and made.kwarg.arg == "old":  # options by their old names
        made.kwarg = None
    return made


def is_old(node):
    """Whether it is an old name, kept for one version (`torch_ferry.old_names`)."""
    return any(isinstance(each, ast.Call) and ast.unparse(each.func) == "renamed"
               for each in getattr(node, "decorator_list", ()))


def signature(name, arguments):
    """As it is called, in lines that are not too wide."""
    text = f"{name}({ast.unparse(arguments)})"
    return textwrap.fill(text, WIDTH, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False)


def markdown(docstring, arguments=()):
    """A docstring's text: its lists of arguments become tables, its examples code."""
    parts = []
    for part in re.split(r"\n\n+", inspect.cleandoc(docstring or "")):
        lines = part.split("\n")
        if all(line.startswith("    ") for line in lines):
            example = textwrap.dedent(part)
            parts.append(f"```{language(example)}\n{example}\n```")
        elif lines[0] == "Args:":
            parts.append(table(described(lines[1:], ARGUMENT), arguments))
        elif column := list_column(lines):
            parts.append(table(described([apart(line, column) for line in lines], ITEM), arguments))
        elif part.startswith("* "):
            parts.append(part)
        elif part:
            parts.append(textwrap.fill(part, WIDTH, break_long_words=False,
                                       break_on_hyphens=False))
    return "\n\n".join(parts)


def language(example):
    try:
        ast.parse(example)
    except SyntaxError:
        return "text"
    return "python"


def list_column(lines):
    """Where the meanings begin if each line is `name   meaning`, or `name` or a meaning alone."""
    goes_on = [re.match(" +", line)[0] for line in lines if line.startswith("   ")]
    first = ITEM.fullmatch(lines[0])
    if not first or not (first[2] or goes_on):
        return 0
    column = min(map(len, goes_on)) if goes_on else first.start(2)
    fits = all(line.startswith(" ") or ITEM.fullmatch(apart(line, column)) for line in lines)
    return column if fits else 0


def apart(line, column):
    """The line with two spaces between its name and its meaning, which begins at the column."""
    if ITEM.fullmatch(line) or line[column - 1] != " ":
        return line
    return f"{line[:column].rstrip()}  {line[column:]}"


def described(lines, pattern):
    """(name, meaning) of each."""
    items = []
    for line in lines:
        found = pattern.fullmatch(line)
        if found:
            items.append((found[1], [found[2] or ""]))
        else:
            items[-1][1].append(line.strip())
    return [(name, " ".join(filter(None, meaning))) for name, meaning in items]


def table(items, arguments):
    rows = [f"| {', '.join(f'`{each}`' for each in name.split(', '))} | {cell(meaning)} |"
            for name, meaning in items]
    what = "argument" if items[0][0].split(", ")[0] in arguments else "attribute"
    return "\n".join([f"| {what} | meaning |", "|---|---|", *rows])


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def docstring(package, module, node):
    """Also `__doc__ = OTHER.__doc__`, and what `__init__` says of the arguments."""
    said = []
    for where, each in package.classes(module, node) if isinstance(node, ast.ClassDef) else [
            (module, node)]:
        said.append(ast.get_docstring(each))
        said += [ast.get_docstring(method) for method in each.body
                 if isinstance(method, FUNCTIONS) and method.name == "__init__"]
        if ast.get_docstring(each):
            break
    return "\n\n".join(filter(None, said))


def members(package, module, node):
    """(call, meaning) of each public method and property that says what it does."""
    seen = {}
    for _, each in package.classes(module, node):
        for method in each.body:
            if not isinstance(method, FUNCTIONS) or is_old(method) or (
                    method.name.startswith(("_", "on_"))):
                continue
            is_property = any(ast.unparse(one) == "property" for one in method.decorator_list)
            call = method.name if is_property else (
                f"{method.name}({ast.unparse(without_self(method.args))})")
            seen.setdefault(method.name, (call, ast.get_docstring(method)))
    return [(call, meaning) for call, meaning in seen.values() if meaning]


def entry(package, module, name, shown):
    """The section of one name."""
    found = package.find(module, name)
    if found is None:
        raise SystemExit(f"torch_ferry.{module} has no {name}")
    where, node = found
    if not isinstance(node, ast.ClassDef):
        return described_call(package, where, node, shown)
    parts = [f"### class {shown}"]
    alike = SAME.get(shown)
    if alike:
        return f"{parts[0]}\n\nIt has the arguments and methods of `torch_ferry.{alike}`."
    said = docstring(package, where, node)
    arguments = package.arguments(where, node)
    text = markdown(said, names_in(arguments))
    if names_in(arguments) and "| attribute |" not in text:
        parts.append(f"```py\n{signature(shown, arguments)}\n```")
    parts.append(text)
    rows = [f"| `{call}` | {cell(meaning)} |" for call, meaning in members(package, where, node)]
    if rows:
        parts.append("\n".join(["| method | what it does |", "|---|---|", *rows]))
    return "\n\n".join(filter(None, parts))


def described_call(package, module, node, shown):
    """The section of a function."""
    arguments = package.arguments(module, node)
    call = f"```py\n{signature(shown, arguments)}\n```" if names_in(arguments) else ""
    text = markdown(ast.get_docstring(node), names_in(arguments))
    return "\n\n".join(filter(None, [f"### {shown}()", call, text]))


def names_in(arguments):
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
             arguments.vararg, arguments.kwarg]
    return [each.arg for each in every if each]


def is_error(node):
    return any(ast.unparse(base).endswith(("Error", "Exception"))
               for base in getattr(node, "bases", ()))


def error_rows(package, module, names):
    """(name, base class, meaning) of those that are exceptions."""
    for name in names:
        _, node = package.find(module, name)
        if is_error(node):
            yield name, ast.unparse(node.bases[0]), cell(ast.get_docstring(node) or "")


def raised(package, names):
    """(name, base class, meaning) of the exceptions of `torch_ferry` itself."""
    for name, meaning in RAISED.items():
        _, node = package.find("_C", name)
        base = ast.unparse(node.bases[0])
        yield name, "torch.utils.checkpoint.CheckpointError" if base == name else base, meaning
    for name, module in names.items():
        if module != "_C":
            yield from error_rows(package, module, [name])


def error_table(rows, title="Exceptions"):
    rows = [f"| `{name}` | `{base}` | {meaning} |" for name, base, meaning in rows]
    return "\n".join([f"### {title}", "", "| exception | base class | when it is raised |",
                      "|---|---|---|", *rows]) if rows else ""


def statistics(package):
    rows = []
    for name in STATISTICS:
        _, node = package.find("_C", name)
        fields = [each.name for each in node.body
                  if isinstance(each, FUNCTIONS) and not each.name.startswith("_")]
        rows.append(f"| `{name}` | {', '.join(f'`{field}`' for field in fields)} |")
    return "\n".join(["### Statistics", "", "| class | attributes |", "|---|---|", *rows])


def pages(folder=PACKAGE):
    """{file name: text}."""
    package = Package(folder)
    names = package.public()
    lost = {name for name, module in names.items() if module == "_C"} ^ set(RAISED)
    if lost:
        raise SystemExit(f"python_api.py: RAISED and torch_ferry differ in {sorted(lost)}")
    parts = ["## torch_ferry"]
    for name, module in names.items():
        if module != "_C" and not is_error(package.find(module, name)[1]):
            parts.append(entry(package, module, name, f"ferry.{name}"))
    parts += [error_table(raised(package, names)), statistics(package)]
    libraries = []
    for module in MODULES:
        (libraries if module in LIBRARIES else parts).extend(section(package, module))
    return {name: "\n\n".join(part.strip("\n") for part in [HEADS[name], *each] if part) + "\n"
            for name, each in zip(HEADS, (parts, libraries))}


def section(package, module):
    """The parts of a page about a module."""
    inside = package.names_of(module)
    return [f"## torch_ferry.{module}", markdown(ast.get_docstring(package.module(module))),
            *(entry(package, module, name, f"{module}.{name}") for name in inside
              if not is_error(package.find(module, name)[1])),
            error_table(error_rows(package, module, inside), f"{module}'s exceptions")]


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    old = False
    for name, now in pages().items():
        page = PAGES / name
        if not options.check:
            page.write_text(now, encoding="utf-8")
            continue
        before = page.read_text(encoding="utf-8") if page.exists() else ""
        if now == before:
            continue
        old = True
        sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
            before.splitlines(), now.splitlines(), "the page", "the sources", n=1, lineterm=""))
        print(f"{page} is out of date. To write it anew:\n    python3 docs/site/python_api.py")
    return int(old)


if __name__ == "__main__":
    sys.exit(main())
