"""Names of options keep to docs/reference/glossary.md: none has a word from its last column.

Compared are the options of the command line (add_option and add_flag), of C++ (TORCH_ARG, and the
members of the core's structs of options) and of Python (what public functions take by name).
"""

import ast
import re

from tree import Finding, top

GLOSSARY = "docs/reference/glossary.md"
WORDS_MAX = 60
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| ?([^|]*?) ?\|$", re.M)
# Old names (one version), a real GPU, a count in a plan, and orders that are no schedule.
ALLOWED = {"--hardware", "--hide-gpu", "packs", "--every-order"}

TYPED = re.compile(r"add_(?:option|flag)(?:_function<[^>]*>)?\(\s*\"([^\"]+)\"")
TORCH_ARG = re.compile(r"\bTORCH_ARG\((?:[^()]|\([^()]*\))*?,\s*(\w+)\)")
CORE = ("shared/seam/options.h", "shared/seam/checkpoint_options.h", "shared/pipeline/stage.h")
MEMBER = re.compile(r"^  (?!const auto)[\w:<>, ]+ (\w+)(?: = [^;]+)?;", re.M)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def options(tree):
    """(path, line, name) of each."""
    for path in tree.cpp_files:
        text = tree.text(path)
        if top(path) in ("cli", "real", "vgpu"):
            for found in TYPED.finditer(text):
                for name in found[1].split(","):
                    if name.startswith("--"):
                        yield path, line_of(text, found.start(1)), name
        if path.startswith("real/include/"):
            for found in TORCH_ARG.finditer(text):
                yield path, line_of(text, found.start(1)), found[1]
        if path in CORE:
            for found in MEMBER.finditer(text):
                yield path, line_of(text, found.start(1)), found[1]
    for path in tree.with_suffix(".py"):
        if path.startswith("python/torch_ferry/"):
            yield from of_python(path, tree.text(path))


def of_python(path, text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            for argument in node.args.kwonlyargs:
                yield path, argument.lineno, argument.arg


def check(tree):
    if GLOSSARY not in tree:
        return
    rows = [row for row in ROW.findall(tree.text(GLOSSARY)) if row[0] not in ("word", "---")]
    if len(rows) > WORDS_MAX:
        yield Finding(GLOSSARY, 1, f"{len(rows)} words", f"at most {WORDS_MAX}")
    instead = {word: row[0] for row in rows for word in re.split(r",\s*", row[1]) if word}
    for path, line, name in options(tree):
        for word in re.split(r"[-_]+", name.strip("-")):
            if word in instead and name not in ALLOWED:
                yield Finding(path, line, f"option {name}",
                              f"the glossary's word, {instead[word]!r} in place of {word!r}")
