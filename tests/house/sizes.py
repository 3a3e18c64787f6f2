"""How long files, functions and lines are."""

import ast
import re

from tree import CPP, PRODUCTION, Finding, name_of, suffix, top

FUNCTION_LINES_MAX = 70  # as a reader counts: from the signature to the closing brace
FILE_LINES_MAX = 600
FEW_FILE_LINES = 450  # no more than a few files of production are longer
FEW = 5
COLUMNS_MAX = 100

DATA = {".json", ".jsonl", ".lock", ".png"}
INCLUDE = re.compile(r"\s*#\s*include\b")
ONE_TOKEN = re.compile(r"\s*(?://+|#+|\*)?\s*\S+")  # a URL, say: there is no place to break it


def is_data(path):
    return (suffix(path) in DATA or name_of(path) == "LICENSE"
            or path.startswith("real/train/text/"))


def python_functions(tree, path):
    """(line, name, lines) of each."""
    for node in ast.walk(ast.parse(tree.text(path), path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1


def functions(tree, path):
    if suffix(path) in CPP:
        return [(f.line, f.name, f.lines) for f in tree.scan(path).functions]
    return list(python_functions(tree, path)) if suffix(path) == ".py" else []


def data_lines(tree, path):
    """The lines within texts of several lines: they are what they are, a log or a table to come."""
    spans = []
    if suffix(path) in CPP:
        spans = tree.cpp(path).raw_strings
    elif suffix(path) == ".py":
        body = ast.parse(tree.text(path), path)
        told = {node.value for node in ast.walk(body) if isinstance(node, ast.Expr)}  # docstrings
        texts = {n for n in ast.walk(body) if isinstance(n, (ast.Constant, ast.JoinedStr))} - told
        spans = [(node.lineno, node.end_lineno) for node in texts]
    return {line for first, last in spans if last > first for line in range(first, last + 1)}


def wide_lines(tree, path):
    wide = [n for n, line in enumerate(tree.lines(path), 1) if len(line) > COLUMNS_MAX]
    data = data_lines(tree, path) if wide else ()
    for number in wide:
        line = tree.lines(path)[number - 1]
        if number not in data and not INCLUDE.match(line) and not ONE_TOKEN.fullmatch(line):
            yield Finding(path, number, f"{len(line)} columns", f"at most {COLUMNS_MAX}")


def is_code(tree, path):
    kinds = CPP | {".py", ".cmake"}
    return suffix(path) in kinds or name_of(path) == "CMakeLists.txt" or path in tree.shell_scripts


def long_files(tree):
    """The files of production that are longer than most are."""
    ours = [path for path in tree.cpp_files if top(path) in PRODUCTION]
    return [path for path in ours if len(tree.lines(path)) > FEW_FILE_LINES]


def check(tree):
    found = []
    for path in tree.files:
        lines = len(tree.lines(path))
        if lines > FILE_LINES_MAX and not is_data(path):
            found.append(Finding(path, lines, f"{lines} lines", f"at most {FILE_LINES_MAX}"))
        for line, name, lines in functions(tree, path):
            if lines > FUNCTION_LINES_MAX:
                what = f"{name} has {lines} lines"
                found.append(Finding(path, line, what, f"at most {FUNCTION_LINES_MAX}"))
        if is_code(tree, path):
            found += wide_lines(tree, path)
    long = long_files(tree)
    if len(long) > FEW:
        for path in long:
            what = f"one of {len(long)} files over {FEW_FILE_LINES} lines"
            found.append(Finding(path, FEW_FILE_LINES + 1, what, f"{FEW} at most"))
    return found
