"""Refuses a program that contradicts itself.

Checked: known keys; slots assigned before their use, once, and not used after their free; views
within storages of known size; counts (a node and its saves against its body, a call against its
segment); nesting of modules. formats/program_check.h is the authority; this is its twin for those
who write programs from Python, over all the statement kinds of the file.
"""

from .program import ITEM_BYTES, ProgramError, end_bytes

TYPE_KEYS = {"dtype", "shape", "strides", "offset"}
# The first key tells the kind; then the keys that must and that may be there.
STATEMENTS = {
    "op": ({"in", "out"}, {"writes", "flops", "read", "written", "ns"}),
    "view": ({"of", "dtype", "shape"}, {"strides", "offset"}),
    "node": ({"id", "in", "out", "body"}, {"saved"}),
    "save": ({"slots"}, set()),
    "free": (set(), set()),
    "enter": (set(), set()),
    "leave": (set(), set()),
    "exclude": (set(), set()),
    "call": ({"in", "out"}, set()),
    "backward": (set(), {"retain_graph", "create_graph"}),
    "record_use": ({"stream"}, set()),
    "stream": (set(), set()),
    "sync": (set(), set()),
    "raise": (set(), set()),
    "move": (set(), set()),
}


def check(program):
    """Raises ProgramError at the first contradiction; returns the program."""
    for line in program.globals:
        _check_global(program, line)
    if [code.kind for code in program.codes].count("main") != 1:
        raise ProgramError("expected exactly one code of kind main")
    for number, code in enumerate(program.codes):
        _Frame(program, code, f"code {number}").run()
    return program


def _check_global(program, line):
    where = f"global {line['global']}"
    unknown = set(line) - {"global", "kind", "name", "grad", "alias"} - TYPE_KEYS
    if unknown:
        raise ProgramError(f"{where}: unknown key {sorted(unknown)[0]!r}")
    if line.get("kind") not in ("parameter", "buffer", "input"):
        raise ProgramError(f"{where}: expected parameter, buffer or input")
    _check_type(line, where)
    alias = line.get("alias")
    if alias is not None:
        if not 0 <= alias < line["global"]:
            raise ProgramError(f"{where}: expected an earlier global as alias")
        target = program.globals[alias]
        while "alias" in target:
            target = program.globals[target["alias"]]
        if target["dtype"] != line["dtype"] or end_bytes(line) > end_bytes(target):
            raise ProgramError(f"{where}: does not fit the global that it aliases")


def _check_type(fields, where):
    if fields.get("dtype") not in ITEM_BYTES:
        raise ProgramError(f"{where}: unknown dtype {fields.get('dtype')!r}")
    shape = fields.get("shape")
    if not isinstance(shape, list) or any(size < 0 for size in shape):
        raise ProgramError(f"{where}: expected a shape")
    if len(fields.get("strides", shape)) != len(shape):
        raise ProgramError(f"{where}: expected as many strides as sizes")


class _Frame:
    """One code, statement after statement. A slot's storage has a size, or None: unknown."""

    def __init__(self, program, code, where):
        self.program, self.code, self.where = program, code, where
        self.tensors, self.edges, self.freed = {}, set(), set()
        self.nodes, self.modules = {}, []
        for line in program.globals:
            root = line
            while "alias" in root:
                root = program.globals[root["alias"]]
            self.tensors[line["global"]] = end_bytes(root)
            self.edges.add(line["global"])

    def run(self):
        for slot in self.code.slots("arguments") + self.code.slots("saved"):
            self.assign(slot, None)
            self.edges.add(slot)
        for number, line in enumerate(self.code.statements):
            self.line = f"{self.where}, statement {number}"
            self.statement(line)
        self.line = f"{self.where}, at its end"
        for slot in self.code.slots("results"):
            if slot is not None:
                self.need(slot, tensor=self.code.kind == "body")
            elif self.code.kind != "body":
                self.fail("expected a slot for each result")
        for node, (saved, body) in self.nodes.items():
            self.count(f"saved tensors of node {node}", saved, len(body.slots("saved")))
        if self.modules:
            self.fail(f"module {self.modules[-1]!r} is not left")

    def statement(self, line):
        kind = next((kind for kind in STATEMENTS if kind in line), None)
        if kind is None:
            self.fail(f"no statement has the keys {sorted(line)}")
        must, may = STATEMENTS[kind]
        if must - set(line):
            self.fail(f"{kind} without {sorted(must - set(line))[0]!r}")
        if set(line) - must - may - {kind}:
            self.fail(f"unknown key {sorted(set(line) - must - may - {kind})[0]!r}")
        getattr(self, "on_" + kind, lambda line: None)(line)

    def on_op(self, line):
        for slot in line["in"]:
            self.need(slot, tensor=True)
        if any(not 0 <= at < len(line["in"]) for at in line.get("writes", [])):
            self.fail('"writes" beyond "in"')
        for output in line["out"]:
            if set(output) - TYPE_KEYS - {"slot"}:
                self.fail("unknown key in an output")
            _check_type(output, self.line)
            self.assign(output["slot"], end_bytes(output))

    def on_view(self, line):
        self.need(line["of"], tensor=True)
        _check_type(line, self.line)
        size = self.tensors[line["of"]]
        if size is not None and end_bytes(line) > size:
            self.fail(f"a view up to byte {end_bytes(line)} of a storage of {size}")
        self.assign(line["view"], size)

    def on_node(self, line):
        body = self.codes(line["body"], "body")
        for slot in line["in"]:
            self.need(slot)
        for slot in line.get("saved", []):
            self.need(slot, tensor=True)
        self.count("inputs", len(line["in"]), len(body.slots("results")))
        self.count("outputs", len(line["out"]), len(body.slots("arguments")))
        if line["id"] in self.nodes:
            self.fail(f"node {line['id']} is there already")
        self.edges.update(line["out"])
        self.nodes[line["id"]] = [len(line.get("saved", [])), body]

    def on_save(self, line):
        if line["save"] not in self.nodes:
            self.fail(f"there is no node {line['save']}")
        for slot in line["slots"]:
            self.need(slot, tensor=True)
        self.nodes[line["save"]][0] += len(line["slots"])

    def on_free(self, line):
        for slot in line["free"]:
            self.need(slot)
            if slot < len(self.program.globals):
                self.fail(f"slot {slot} is a global: it cannot be freed")
            self.freed.add(slot)

    def on_enter(self, line):
        self.modules.append(line["enter"])

    def on_leave(self, line):
        if not self.modules or self.modules.pop() != line["leave"]:
            self.fail(f"leaves {line['leave']!r}, which is not the innermost module")

    def on_call(self, line):
        callee = self.codes(line["call"], "segment")
        for slot in line["in"]:
            self.need(slot)
        self.count("inputs of the call", len(line["in"]), len(callee.slots("arguments")))
        self.count("outputs of the call", len(line["out"]), len(callee.slots("results")))
        for slot in line["out"]:
            self.assign(slot, None)
            self.edges.add(slot)

    def on_backward(self, line):
        for slot in line["backward"]:
            self.need(slot)

    def codes(self, number, kind):
        if not 0 <= number < len(self.program.codes) or self.program.codes[number].kind != kind:
            self.fail(f"code {number} is no {kind}")
        return self.program.codes[number]

    def assign(self, slot, size):
        if slot in self.tensors:
            self.fail(f"slot {slot} is assigned twice")
        self.tensors[slot] = size

    def need(self, slot, tensor=False):
        if slot in self.freed:
            self.fail(f"slot {slot} is used after its free")
        if slot not in self.tensors and (tensor or slot not in self.edges):
            self.fail(f"slot {slot} is used before it is assigned")

    def count(self, what, found, wanted):
        if found != wanted:
            self.fail(f"{found} {what}, but the code has {wanted}")

    def fail(self, message):
        raise ProgramError(f"{getattr(self, 'line', self.where)}: {message}")
