"""Checks single lines of a program: the keys, the words, the type of a tensor.

This is formats/program_read.cpp in Python, as `torch_ferry.check` is formats/program_check.h. Left
to the C++ reader of the file: the kinds of values (numbers, texts, lists; words and flags are
checked here), ranges of numbers, sizes beyond 64 bits, and duplicate keys. A value of a wrong kind
may raise a TypeError here.
"""

from .program import ITEM_BYTES, ProgramError, end_bytes

# The keys that a line of each kind must have, and those that it may have.
GLOBAL = ({"global", "kind", "name", "dtype", "shape"}, {"strides", "offset", "grad", "alias"})
CODE = ({"code", "kind"}, {"name", "arguments", "saved", "results"})
OUTPUT = ({"slot", "dtype", "shape"}, {"strides", "offset"})
OPTIONS = {"early_stop", "preserve_rng", "determinism_check", "captured"}  # for a recompute
# The first key of a statement is its kind.
STATEMENTS = {
    "op": ({"in", "out"}, {"writes", "flops", "read", "written", "kernels", "matmul", "aligned",
                           "ns", "once", "random"}),
    "view": ({"of", "dtype", "shape"}, {"strides", "offset"}),
    "node": ({"id", "in", "out", "body"}, {"saved"}),
    "save": ({"slots"}, set()),
    "free": (set(), set()),
    "enter": (set(), {"arguments", "called"}),
    "leave": (set(), set()),
    "exclude": (set(), set()),
    "call": ({"in", "out"}, {"recompute"} | OPTIONS),
    "backward": (set(), {"inputs", "out", "retain_graph", "create_graph"}),
    "record_use": ({"stream"}, set()),
    "stream": (set(), set()),
    "sync": (set(), set()),
    "raise": (set(), set()),
    "move": (set(), set()),
    "ambient": (set(), set()),
    "when": ({"count"}, set()),
}
WORDS = {
    "exclude": ("begin", "end"),
    "recompute": ("checkpoint", "reentrant", "replay"),
    "when": ("first", "recomputing"),
}
FLAGS = {"grad", "once", "random", "retain_graph", "create_graph"} | OPTIONS - {"captured"}


def kind_of(statement):
    return next((kind for kind in STATEMENTS if kind in statement), None)


def _check_keys(line, keys, where):
    must, may = keys
    for key in sorted(must - set(line)):
        raise ProgramError(f"{where}: expected a key {key!r}")
    for key, value in line.items():
        if key not in must | may:
            continue  # the C++ reader ignores unknown keys as well
        if key in WORDS and value not in WORDS[key]:
            raise ProgramError(f"{where}: expected {key!r} to be one of {', '.join(WORDS[key])}")
        if key in FLAGS and not isinstance(value, bool):
            raise ProgramError(f"{where}: expected {key!r} to be true or false")


def check_global(program, line):
    where = f"global {line['global']}"
    _check_keys(line, GLOBAL, where)
    if line["kind"] not in ("parameter", "buffer", "input"):
        raise ProgramError(f"{where}: expected parameter, buffer or input")
    _check_type(line, where)
    if "alias" in line:
        alias = line["alias"]
        if not 0 <= alias < line["global"]:
            raise ProgramError(f"{where}: expected an earlier global as alias")
        target = root(program, program.globals[alias])
        if target["dtype"] != line["dtype"] or end_bytes(line) > end_bytes(target):
            raise ProgramError(f"{where}: does not fit the global that it aliases")


def root(program, line):
    """Returns the global that owns the storage of this one."""
    while "alias" in line:
        line = program.globals[line["alias"]]
    return line


def _check_type(fields, where):
    if fields["dtype"] not in ITEM_BYTES:
        raise ProgramError(f"{where}: unknown dtype {fields['dtype']!r}")
    shape = fields["shape"]
    if not isinstance(shape, list):
        raise ProgramError(f"{where}: expected a shape")
    strides = fields.get("strides", shape)
    if len(strides) != len(shape):
        raise ProgramError(f"{where}: expected as many strides as sizes")
    if any(number < 0 for number in [*shape, *strides, fields.get("offset", 0)]):
        raise ProgramError(f"{where}: expected sizes, strides and offset from 0")


def check_code(code, where):
    """Checks the line of a code and the lines of its statements."""
    _check_keys(code.signature, CODE, where)
    if code.kind not in ("main", "segment", "body"):
        raise ProgramError(f"{where}: expected main, segment or body")
    if code.kind == "main" and code.slots("arguments") + code.slots("results"):
        raise ProgramError(f"{where}: expected a main code that takes and returns nothing")
    if code.kind != "body" and code.slots("saved"):
        raise ProgramError(f'{where}: expected "saved" only in a body')
    for number, line in enumerate(code.statements):
        at = f"{where}, statement {number}"
        kind = kind_of(line)
        if kind is None:
            raise ProgramError(f"{at}: no statement has the keys {sorted(line)}")
        must, may = STATEMENTS[kind]
        if kind == "call" and "recompute" not in line:
            may = set()  # without a recompute there are no options
        elif kind == "call" and line["recompute"] == "replay":
            may = {"recompute"}
        _check_keys(line, (must | {kind}, may), at)
        if kind == "sync" and len(line["sync"]) != 2:
            raise ProgramError(f'{at}: expected "sync": [from, to]')
        if kind == "view":
            _check_type(line, at)
        for output in line["out"] if kind == "op" else ():
            _check_keys(output, OUTPUT, at)
            _check_type(output, at)
