"""Lowers a trace to a program.

Each window on a storage has a slot. The operator that makes a storage assigns its first slot, and a
`view` statement is added at the first use of another window. When a storage dies, all its slots are
freed. Edges have slots of their own, one for each output of a node. Bodies number their slots from
the number of globals upward (arguments, saved tensors, the rest in order), so that equal nodes
share one code.
"""

from .op_call import dtype_name
from .program import Code, Program, ProgramError, end_bytes, json_line, type_fields
from .trace import DeathEvent, DropEvent, ModuleEvent, OpEvent, PackEvent, Ref, SegmentEvent


def type_of(ref):
    return type_fields(dtype_name(ref.dtype), ref.shape, ref.strides, ref.offset)


class Globals:
    """The table of globals, and the global of each storage."""

    def __init__(self, trace):
        self.lines, self.slots, self.bases = [], {}, {}
        self.bytes = trace.storage_bytes

    def add(self, kind, name, ref, grad=False):
        number = len(self.lines)
        fields = type_of(ref)
        if ref.storage not in self.bases and end_bytes(fields) < self.bytes[ref.storage]:
            itemsize = ref.dtype.itemsize  # only a window: the global has to be the whole storage
            fields = type_fields(dtype_name(ref.dtype), [self.bytes[ref.storage] // itemsize])
        line = {"global": number, "kind": kind, "name": name, **fields}
        if grad:
            line["grad"] = True
        if ref.storage in self.bases:
            line["alias"] = self.bases[ref.storage]
        self.lines.append(line)
        self.bases.setdefault(ref.storage, number)
        if fields == type_of(ref):
            self.slots.setdefault(ref, number)
        self.slots.setdefault(("leaf", ref), number)

    def some_leaf(self):
        """Returns a list with one global that requires a gradient, or an empty list."""
        return [line["global"] for line in self.lines if "grad" in line][:1]


class Frame:
    """The statements of one code, and the slots that they assign."""

    def __init__(self, trace, table, where=""):
        """`where` is added to error messages, to say which code this is."""
        self.trace, self.table, self.where = trace, table, where
        self.statements = []
        self.next = len(table.lines)
        self.slots, self.bases, self.owned = {}, {}, {}
        self.dying = []

    def new(self):
        self.next += 1
        return self.next - 1

    def free(self):
        if self.dying:
            dying, self.dying = sorted(self.dying), []
            self.statements.append({"free": dying})

    def emit(self, line):
        self.free()
        self.statements.append(line)

    def own(self, ref, slot):
        self.slots.setdefault(ref, slot)
        self.bases.setdefault(ref.storage, slot)
        self.owned.setdefault(ref.storage, []).append(slot)

    def slot(self, ref, who):
        if ref in self.slots:
            return self.slots[ref]
        if ref in self.table.slots:
            return self.table.slots[ref]
        base = self.bases.get(ref.storage, self.table.bases.get(ref.storage))
        if base is None:
            raise ProgramError(
                f"{who} uses a tensor that it was not given{self.where}: it is no gradient, was "
                "not saved with save_for_backward or made here, and is no parameter, buffer or "
                "input (checkpoints other than those of PyTorch and Ferry cannot be captured)")
        slot = self.new()
        self.emit({"view": slot, "of": base, **type_of(ref)})
        self.own(ref, slot)
        return slot

    def output(self, ref):
        slot, fields = self.new(), type_of(ref)
        size = self.trace.storage_bytes[ref.storage]
        if end_bytes(fields) == size:
            self.own(ref, slot)
        else:  # only a window on the new storage
            shape = (size // ref.dtype.itemsize,)
            fields = type_fields(dtype_name(ref.dtype), shape)
            self.own(Ref(ref.storage, ref.dtype, shape, (1,), 0), slot)
        return {"slot": slot, **fields}

    def op(self, event):
        inputs = [self.slot(ref, event.name) for ref in event.inputs]
        outputs = [self.output(ref) for ref in event.outputs]
        line = {"op": event.name, "in": inputs, "out": outputs}
        if event.writes:
            line["writes"] = list(event.writes)
        if event.once or any(ref.storage in self.trace.apart for ref in event.outputs):
            line["once"] = True
        self.emit({**line, **event.costs})

    def death(self, event):
        self.dying += self.owned.pop(event.storage, [])
        self.bases.pop(event.storage, None)


def lower(trace, table, kept, name, about):
    """Returns the Program of a trace. `kept` are the storages that outlive forward."""
    forward = _Forward(trace, table)
    forward.run()
    first = len(table.lines)
    results = [forward.edge(*trace.root)]
    for storage in kept:
        if storage in forward.frame.bases and storage not in table.bases:
            results.append(forward.frame.bases[storage])
    outputs = list(range(first, first + len(results)))
    main = [{"call": 1, "in": [], "out": outputs}, {"backward": [outputs[0]]}]
    codes = [Code({"code": 0, "kind": "main"}, main)]
    codes.append(Code({"code": 1, "kind": "segment", "name": "forward", "arguments": [],
                       "results": results}, forward.frame.statements))
    return Program(name, about, table.lines, codes + forward.codes)


class _Forward:
    """Makes the segment `forward`. Nodes are placed between the events by their sequence number."""

    def __init__(self, trace, table):
        self.trace, self.table = trace, table
        self.frame = Frame(trace, table)
        self.codes, self.code_of = [], {}
        self.edges, self.ids = {}, {}  # (node, output) → slot; node → its id in the file
        self.leaves = {}  # a leaf that the step made → its slot
        self.packs = {}  # node → its packs, in order
        for number, (node, _) in enumerate(trace.packs):
            self.packs.setdefault(node, []).append(number)
        self._choose_nodes()

    def _choose_nodes(self):
        """Chooses the nodes that backward runs, those that save something, and all behind them."""
        live, todo = set(), [self.trace.root[0], *self.packs]
        self.outputs = {}  # node → how many outputs are used
        self.last_consumer = {}
        while todo:
            number = todo.pop()
            if number in live:
                continue
            live.add(number)
            for edge in self._edges_of(number):
                if isinstance(edge, Ref):
                    continue
                self.outputs[edge[0]] = max(self.outputs.get(edge[0], 0), edge[1] + 1)
                last = max(self.last_consumer.get(edge[0], -1), number)
                self.last_consumer[edge[0]] = last
                todo.append(edge[0])
        node, output = self.trace.root
        self.outputs[node] = max(self.outputs.get(node, 0), output + 1)
        self.waiting = sorted(live, reverse=True)

    def _edges_of(self, number):
        """Returns the edges of a node that lead to another node or to a leaf."""
        node = self.trace.nodes.get(number)
        return [] if node is None else [edge for edge in node.edges if edge is not None]

    def _leaf(self, ref):
        """Returns the slot that carries the edge of a leaf.

        The step itself may make a leaf: PEFT calls `requires_grad_()` on results of frozen weights
        under checkpoints. Such a leaf becomes a node that takes a gradient and gives none. The node
        gets an edge to some global leaf, because no gradient would flow to a node without edges."""
        if ("leaf", ref) in self.table.slots:
            return self.table.slots["leaf", ref]
        if ref not in self.leaves:
            behind, number, slot = self.table.some_leaf(), self._next_id(), self.frame.new()
            body = self._numbered(Code(
                {"kind": "body", "name": "AccumulateGrad", "arguments": [len(self.table.lines)],
                 "saved": [], "results": [None for _ in behind]}, []))
            self.frame.emit({"node": "AccumulateGrad", "id": number, "in": behind, "out": [slot],
                             "body": body})
            self.leaves[ref] = slot
        return self.leaves[ref]

    def _is_made_leaf(self, ref):
        leaf = self.trace.leaves.get(ref.storage)
        return leaf == ref and ("leaf", ref) not in self.table.slots

    def edge(self, node, output):
        if (node, output) not in self.edges:
            raise ProgramError(f"node {node} of the graph is used before it was made, or after it "
                               "died: the graph of this model cannot be reconstructed from "
                               "PyTorch's sequence numbers")
        return self.edges[node, output]

    def run(self):
        at = 0
        while at < len(self.trace.events):
            event = self.trace.events[at]
            at += 1
            if isinstance(event, PackEvent):
                self._place_before(event.made, self.trace.packs[event.pack][0])
                at = self._save(at - 1)
            elif isinstance(event, OpEvent):
                self._place_before(event.made)
                self.frame.op(event)
            elif isinstance(event, ModuleEvent):
                self._place_before(event.made)
                self.frame.emit({event.key: event.name})
            elif isinstance(event, SegmentEvent):
                self._place_before(event.made)
                slots = [self.frame.slot(ref, event.name) for ref in event.arguments]
                slots += [self._leaf(ref) for ref in event.arguments if self._is_made_leaf(ref)]
                slots += [self.edges[edge] for edge in event.behind if edge in self.edges]
                self.frame.emit({"enter": event.name, "arguments": slots,
                                 **({} if event.called else {"called": False})})
            elif isinstance(event, DeathEvent):
                self.frame.death(event)
            elif isinstance(event, DropEvent):
                self._drop(self.trace.packs[event.pack][0])
        self._place_before(float("inf"))
        self.frame.free()  # frees tensors that die at the end of forward in their segment

    def _place_before(self, made, but=None):
        """Places the nodes that were made by now, except `but`, the one that is about to save."""
        while self.waiting and self.waiting[-1] < made:
            number = self.waiting.pop()
            if number != but:
                self._make_node(number, [])
            elif not self.waiting or self.waiting[-1] >= made:
                self.waiting.append(number)
                return
            else:
                self.waiting.insert(-1, number)

    def _save(self, at):
        """Adds the packs of one node that start at event `at`. Returns the event after them."""
        events, packs = self.trace.events, self.trace.packs
        node = packs[events[at].pack][0]
        slots = []
        while at < len(events) and isinstance(events[at], PackEvent) \
                and packs[events[at].pack][0] == node:
            slots.append(self.frame.slot(packs[events[at].pack][1], "a saved tensor"))
            at += 1
        if node in self.ids:
            self.frame.emit({"save": self.ids[node], "slots": slots})
        else:
            self.waiting.remove(node)
            self._make_node(node, slots)
        return at

    def _make_node(self, number, saved):
        node = self.trace.nodes.get(number)
        name = node.name if node else "Unknown"
        inputs = []
        for edge in self._edges_of(number):
            inputs.append(self._leaf(edge) if isinstance(edge, Ref) else self.edge(*edge))
        outputs = [self.frame.new() for _ in range(self.outputs.get(number, 1))]
        for at, slot in enumerate(outputs):
            self.edges[number, at] = slot
        self.ids[number] = self._next_id()
        line = {"node": name, "id": self.ids[number], "in": inputs, "out": outputs}
        if saved:
            line["saved"] = saved
        line["body"] = self._body(number, name, len(outputs), len(inputs))
        self.frame.emit(line)

    def _next_id(self):
        return len(self.ids) + len(self.leaves)

    def _drop(self, node):
        """Frees the slots of a node that died in forward, and of the nodes that only it held."""
        todo = [node]
        while todo:
            node = todo.pop()
            if node not in self.ids or self.last_consumer.get(node, -1) > max(self.ids):
                continue
            slots = [self.edges.pop((node, at)) for at in range(self.outputs.get(node, 1))
                     if (node, at) in self.edges]
            self.frame.dying += slots
            parents = [e[0] for e in self._edges_of(node) if slots and not isinstance(e, Ref)]
            todo += [p for p in parents if p not in self.packs and p not in self.trace.bodies]

    def _body(self, number, name, arguments, results):
        """Returns the number of the code that this node runs in backward."""
        return self._numbered(_body(
            self.trace, self.table, number, name, self.packs.get(number, []), arguments,
            [edge is not None for edge in (self.trace.nodes[number].edges if results else [])]))

    def _numbered(self, code):
        """Returns the number of a code. Equal codes have one number."""
        key = json_line([code.signature, code.statements])
        if key not in self.code_of:
            self.code_of[key] = len(self.codes) + 2
            code.signature = {"code": self.code_of[key], **code.signature}
            self.codes.append(code)
        return self.code_of[key]


def _body(trace, table, number, name, packs, arguments, wanted):
    """Returns the code of a node's backward. `wanted` says for each edge if it leads somewhere."""
    frame = Frame(trace, table, f" in the backward of {name}")
    body = trace.bodies.get(number)
    argument_slots = [frame.new() for _ in range(arguments)]
    saved_slots = [frame.new() for _ in packs]
    results = [None for is_wanted in wanted if is_wanted]
    if body is not None:
        for slot, ref in zip(argument_slots, body.arguments):
            if ref is not None:
                frame.own(ref, slot)
        for slot, pack in zip(saved_slots, packs):
            if pack in body.saved:
                frame.own(body.saved[pack], slot)
        for event in body.events:
            if isinstance(event, OpEvent):
                frame.op(event)
            elif isinstance(event, DeathEvent):
                frame.death(event)
        refs = [ref for ref, is_wanted in zip(body.results, wanted) if is_wanted]
        results = [None if ref is None else frame.slot(ref, name) for ref in refs]
    signature = {"kind": "body", "name": name, "arguments": argument_slots,
                 "saved": saved_slots, "results": results}
    return Code(signature, frame.statements)
