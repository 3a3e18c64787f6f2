"""The comments of a file, line by line, whatever language it is in."""

import ast
import io
import re
import tokenize

from tree import CPP, name_of, suffix

HASH = re.compile(r"(?:^|\s)#(?!!)(.*)")
WITH_HASHES = {".cmake", ".txt", ".toml", ".in", ".supp", ".clang-format", ".clang-tidy"}


def of_cpp(tree, path):
    cpp = tree.cpp(path)
    for offset, text in cpp.comments:
        for number, line in enumerate(text.split("\n"), cpp.line(offset)):
            yield number, line.strip().lstrip("/*").removesuffix("*/")


def docstrings(tree, path):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(tree.text(path), path)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0].value
            yield from enumerate(text.value.split("\n"), text.lineno)


def of_python(tree, path):
    for token in tokenize.generate_tokens(io.StringIO(tree.text(path)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#")
    yield from docstrings(tree, path)


def with_hashes(tree, path):
    for number, line in enumerate(tree.lines(path), 1):
        if match := HASH.search(line):
            yield number, match[1]


def comment_lines(tree, path):
    """(line, text) in the order of lines."""
    if suffix(path) in CPP:
        return list(of_cpp(tree, path))
    if suffix(path) == ".py":
        return sorted(of_python(tree, path))
    hashes = suffix(path) in WITH_HASHES or name_of(path) in WITH_HASHES
    return list(with_hashes(tree, path)) if hashes or path in tree.shell_scripts else []
