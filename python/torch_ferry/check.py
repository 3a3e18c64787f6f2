"""Checks a program for contradictions.

This is formats/program_check.h in Python, for those who write programs from Python. The header is
the authority: it lists what holds after the check. Checked are slots, views within their storage
(also through calls), counts, modules and exclusions, and `when` lines. Each code is checked twice,
as it runs in forward and as it is recomputed. `torch_ferry.lines` checks each line by itself, and
lists what both leave to the C++ reader.
"""

from .lines import check_code, check_global, kind_of, root
from .program import ProgramError, end_bytes


def check(program):
    """Checks a program and returns it. Raises ProgramError at the first contradiction."""
    for line in program.globals:
        check_global(program, line)
    for number, code in enumerate(program.codes):
        check_code(code, f"code {number}")
    if [code.kind for code in program.codes].count("main") != 1:
        raise ProgramError("expected exactly one code of kind main")
    # With a `when`, the forward and the recompute have different statements: both are checked.
    whens = any("when" in line for code in program.codes for line in code.statements)
    for again in (False, True) if whens else (False,):
        frames = {}
        for number in range(len(program.codes)):
            _Frame.of(program, number, again, frames)
    return program


class _Frame:
    """Walks through the statements of one code, as it runs in forward or as it is recomputed.

    `tensors` has the storage of each slot with a tensor, as (bytes, argument). `bytes` is None if
    unknown. `argument` is the number of the segment's argument that has this storage, or None.
    `needs` says which arguments must be tensors, and of how many bytes; each caller checks that.
    """

    @classmethod
    def of(cls, program, number, again, frames):
        """Returns the frame of a code after its last statement. Returns None while the code is
        being walked through: then it calls itself."""
        if number not in frames:
            frames[number] = None
            frame = cls(program, number, again, frames)
            frame.run()
            frames[number] = frame
        return frames[number]

    def __init__(self, program, number, again, frames):
        self.program, self.again, self.frames = program, again, frames
        self.code, self.where = program.codes[number], f"code {number}"
        self.line = self.where
        self.tensors, self.edges, self.freed = {}, set(), set()
        self.nodes, self.needs = {}, {}
        self.regions, self.raises = [], False
        for line in program.globals:
            self.assign(line["global"], (end_bytes(root(program, line)), None))
            self.edges.add(line["global"])
        for at, slot in enumerate(self.code.slots("arguments")):
            self.assign(slot, (None, at if self.code.kind == "segment" else None))
            self.edges.add(slot)
        for slot in self.code.slots("saved"):
            self.assign(slot)
            self.edges.add(slot)

    def run(self):
        self.block(self.code.statements)
        self.line = f"{self.where}, at its end"
        for slot in self.code.slots("results"):
            if slot is not None:
                self.need(slot, tensor=self.code.kind == "body")
            elif self.code.kind != "body":
                self.fail("expected a slot for each result")
        for node, (saved, body) in self.nodes.items():
            self.count(f"saved tensors of node {node}", saved, len(body.slots("saved")))

    def block(self, statements, first=0, when=False):
        """Checks the statements of a code or of a `when`. Regions must end in the same block."""
        outside, (self.regions, self.raises) = (self.regions, self.raises), ([], False)
        after = 0  # the first statement that is not under the last `when`
        for at, line in enumerate(statements):
            if at < after:
                continue
            self.line = f"{self.where}, statement {first + at}"
            if "when" not in line:
                getattr(self, "on_" + kind_of(line), lambda line: None)(line)
                continue
            after = at + 1 + line["count"]
            if when:
                self.fail("is a when inside another")
            if not at < after <= len(statements):
                self.fail(f"there are no {line['count']} statements after it")
            if (line["when"] == "recomputing") == self.again:
                self.block(statements[at + 1:after], first + at + 1, when=True)
        if self.regions and not self.raises:  # a raise leaves all regions
            self.fail(f"{self.regions[-1]} is not left" + (" under its when" if when else ""))
        self.regions, self.raises = outside

    def on_op(self, line):
        for slot in line["in"]:
            self.need(slot, tensor=True)
        if any(not 0 <= at < len(line["in"]) for at in line.get("writes", [])):
            self.fail('"writes" beyond "in"')
        for output in line["out"]:
            self.assign(output["slot"], (end_bytes(output), None))

    def on_view(self, line):
        self.need(line["of"], tensor=True, end=end_bytes(line))
        self.assign(line["view"], self.tensors[line["of"]])

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
        for slot in line["out"]:
            self.add_edge(slot)
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
        for slot in line.get("arguments", []):
            self.need(slot)
        self.regions.append(f"module {line['enter']!r}")

    def on_leave(self, line):
        self.leave(f"module {line['leave']!r}")

    def on_exclude(self, line):
        if line["exclude"] == "begin":
            self.regions.append("an exclusion")
        else:
            self.leave("an exclusion")

    def on_call(self, line):
        callee = self.codes(line["call"], "segment")
        frame = self.of(self.program, line["call"], self.again, self.frames)
        if frame is None:
            self.fail(f"code {line['call']} calls itself")
        self.count("inputs of the call", len(line["in"]), len(callee.slots("arguments")))
        self.count("outputs of the call", len(line["out"]), len(callee.slots("results")))
        captured = line.get("captured", 0)
        if not 0 <= captured <= len(line["in"]):
            self.fail(f"{captured} captured, but {len(line['in'])} in \"in\"")
        if captured and line["recompute"] != "checkpoint":
            self.fail('"captured" is for the recompute "checkpoint" alone')
        for at, slot in enumerate(line["in"]):
            self.need(slot, tensor=at in frame.needs, end=frame.needs.get(at, 0))
        for slot, result in zip(line["out"], callee.slots("results")):
            storage = frame.tensors.get(result)  # no storage if the result is only an edge
            if storage and storage[1] is not None:
                storage = self.tensors.get(line["in"][storage[1]])
            if storage:
                self.assign(slot, storage)
            self.add_edge(slot)

    def on_backward(self, line):
        if not line["backward"]:
            self.fail("expected a root to go backward from")
        inputs, outputs = line.get("inputs", []), line.get("out", [])
        for slot in line["backward"] + inputs:
            self.need(slot)
        if len(inputs) != len(outputs):
            self.fail(f"{len(outputs)} slots for the gradients of {len(inputs)} inputs")
        for slot in outputs:
            self.assign(slot)
            self.add_edge(slot)

    def on_record_use(self, line):
        self.need(line["record_use"], tensor=True)

    def on_raise(self, line):
        self.raises = True

    def on_move(self, line):
        if not 0 <= line["move"] < len(self.program.globals):
            self.fail(f"slot {line['move']} is no global: it cannot be moved")

    def leave(self, what):
        if not self.regions or self.regions.pop() != what:
            self.fail(f"leaves {what}, which is not the innermost region")

    def codes(self, number, kind):
        if not 0 <= number < len(self.program.codes) or self.program.codes[number].kind != kind:
            self.fail(f"code {number} is no {kind}")
        return self.program.codes[number]

    def assign(self, slot, storage=(None, None)):
        if slot in self.freed:
            self.fail(f"slot {slot} is assigned after its free")
        if slot in self.tensors:
            self.fail(f"slot {slot} is assigned twice")
        self.tensors[slot] = storage

    def add_edge(self, slot):
        if slot in self.freed:
            self.fail(f"slot {slot} is assigned after its free")
        self.edges.add(slot)

    def need(self, slot, tensor=False, end=0):
        """Checks that the slot is live and, for a tensor, that its storage reaches to `end`."""
        if slot in self.freed:
            self.fail(f"slot {slot} is used after its free")
        if slot not in self.tensors and (tensor or slot not in self.edges):
            self.fail(f"slot {slot} is used before it is assigned")
        if not tensor:
            return
        size, argument = self.tensors[slot]
        if size is not None and end > size:
            self.fail(f"a view up to byte {end} of a storage of {size}")
        if argument is not None:
            self.needs[argument] = max(self.needs.get(argument, 0), end)

    def count(self, what, found, wanted):
        if found != wanted:
            self.fail(f"{found} {what}, but the code has {wanted}")

    def fail(self, message):
        again = ", when this runs again" if self.again else ""
        raise ProgramError(f"{self.line}: {message}{again}")
