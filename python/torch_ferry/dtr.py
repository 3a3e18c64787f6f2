"""Makes a program of an operator log of DTR, so that `ferry plan` can plan it.

    python -m torch_ferry.dtr transformer-10.log -o transformer.jsonl

Such a log has no autograd graph: it has the operators of forward, then those of backward. Here each
operator of backward becomes the body of a node. Values of forward that the operator reads become
saved tensors of its node, and values of backward become gradients that arrive there. The nodes are
made in the reverse order of the log's backward, so that they run in the log's order. Values that
remain at the end of backward are held by a last node.

A log does not distinguish a name in the model's code from a reference of the graph. Here a value
that backward reads has a name until its last use in forward; from then on only the graph holds it.
All other values live as long as the log says.

Sizes and times are those of the log. There are no shapes (a tensor is a number of bytes), no
modules and no parameters. Constants are results of operators that take no time and are never
recomputed, because logs release some of them.
"""

import argparse
import pathlib
import sys
from collections import defaultdict

from .dtr_log import LogError, Op, Value, read
from .program import Code, Program, WriteError


class _Frame:
    """The slots and the statements of one code."""

    def __init__(self, code):
        self.code, self.slots, self.of = code, 0, {}

    def slot(self, value=None):
        self.slots += 1
        if value is not None:
            self.of[value.number] = self.slots - 1
        return self.slots - 1

    def add(self, line):
        self.code.statements.append(line)

    def run(self, op):
        line = {"op": op.name, "in": [self.of[value.number] for value in op.reads], "out": [
            {"slot": self.slot(value)} | _bytes(value.bytes)
            for value in op.makes if value.storage == value.number]}
        if op.writes:
            line["writes"] = op.writes
        self.add(line | {"ns": op.ns})
        for value in op.makes:
            if value.storage != value.number:
                base = next(each for each in op.reads if each.storage == value.storage)
                # The log does not say which bytes of its base an alias has: take the first.
                self.add({"view": self.slot(value), "of": self.of[base.number]}
                         | _bytes(min(value.bytes, base.bytes)))


def _bytes(size):
    return {"dtype": "u8", "shape": [size]}


class _Nodes:
    """The graph of backward: one node for each operator, then one that holds what remains."""

    def __init__(self, log):
        self.ops = [event for event in log.backward if isinstance(event, Op)]
        self.end = len(self.ops)
        self.arrivals = defaultdict(list)  # node → the values of backward that arrive there
        self.saved = defaultdict(list)  # value of forward → the nodes that read it
        self.leaving = defaultdict(list)  # node → [(value, the node where it goes)]
        makers = {}
        for node, op in enumerate(self.ops):
            for value in {each.number: each for each in op.reads}.values():
                if value.number in makers:
                    self._go(makers[value.number], value, node)
                else:
                    self.saved[value.number].append(node)
            makers.update((value.number, node) for value in op.makes)
        dead = {event for event in log.backward if isinstance(event, int)}
        for number, maker in makers.items():
            if number not in dead:
                self._go(maker, log.values[number], self.end)

    def _go(self, maker, value, node):
        self.leaving[maker].append((value, node))
        self.arrivals[node].append(value)


class _Lowering:
    """Lowers a log to a program. A node that passes nothing on has an edge to the leaf, because
    autograd would not run it otherwise."""

    LEAF = 0
    ROOT = "backward"
    FORWARD = 1  # number of this code; the codes of the nodes follow it

    def __init__(self, log, name):
        self.log, self.nodes = log, _Nodes(log)
        self.frame = _Frame(Code({"code": self.FORWARD, "kind": "segment", "name": "forward",
                                  "arguments": []}))
        leaf = {"global": self.frame.slot(), "kind": "parameter", "name": "the graph's leaf",
                "dtype": "f32", "shape": [1], "grad": True}
        self.program = Program(name, {"made of": "an operator log"}, [leaf],
                               [Code({"code": 0, "kind": "main"}), self.frame.code])
        self.packed = defaultdict(list)  # node → the values that it saves, in order
        self.edges = {}  # (node, value) → the slot of the edge on which the value arrives
        self.first = [node for node in range(self.nodes.end + 1) if not self.nodes.arrivals[node]]

    def lower(self):
        for node in range(self.nodes.end, -1, -1):
            self._make(node)
        constants = [event for event in self.log.backward if isinstance(event, Value)]
        events = [*self.log.forward, *constants]
        due = self._save_points(events)
        last = self._last_uses(events, due)
        for number, event in enumerate(events):
            self._forward(event)
            for value in due[number]:
                for node in self.nodes.saved[value]:
                    self.packed[node].append(value)
                    self.frame.add({"save": node, "slots": [self.frame.of[value]]})
            for value in last[number]:
                self.frame.add({"free": [self.frame.of.pop(value)]})
        self._backward()
        for node in range(self.nodes.end + 1):
            self._body(node)
        self.program.codes.append(Code(
            {"code": self._code(self.nodes.end + 1), "kind": "body", "name": self.ROOT,
             "arguments": [1], "saved": [], "results": [None] * len(self.first)}))
        return self.program

    def _make(self, node):
        for value in self.nodes.arrivals[node]:
            self.edges[node, value.number] = self.frame.slot()
        if node in self.first:  # no value arrives there, and it still has to run
            self.edges[node, None] = self.frame.slot()
        self.frame.add({
            "node": self._name(node), "id": node,
            "in": [self.edges[to, value.number]
                   for value, to in self.nodes.leaving[node]] or [self.LEAF],
            "out": [self.edges[node, value] for value in self._given(node)],
            "saved": [], "body": self._code(node)})

    def _code(self, node):
        return self.FORWARD + 1 + node

    def _name(self, node):
        return self.nodes.ops[node].name if node < self.nodes.end else "what is left"

    def _given(self, node):
        return [value.number for value in self.nodes.arrivals[node]] or [None]

    def _save_points(self, events):
        """Returns {event: the values to save after it}: their storage is not written any more."""
        made, written = {}, {}
        for number, event in enumerate(events):
            if isinstance(event, Value):
                made[event.number] = number
            elif isinstance(event, Op):
                made.update((value.number, number) for value in event.makes)
                written.update((event.reads[at].storage, number) for at in event.writes)
        points = defaultdict(list)
        for value in sorted(self.nodes.saved):
            storage = self.log.values[value].storage
            points[max(made[value], written.get(storage, 0))].append(value)
        return points

    def _last_uses(self, events, due):
        """Returns {event: the values whose names end after it}: then only the graph holds them."""
        last, saved = {}, {self.log.values[value].storage for value in self.nodes.saved}
        for number, event in enumerate(events):
            if isinstance(event, int):
                last.pop(event, None)
                continue
            made = [event] if isinstance(event, Value) else event.reads + event.makes
            last.update((value.number, number) for value in made)
            last.update((value, number) for value in due[number])
        ends = defaultdict(list)
        for value in self._dead():
            if value in last and self.log.values[value].storage in saved:
                ends[last[value]].append(value)
        return ends

    def _dead(self):
        return [event for event in self.log.backward if isinstance(event, int)]

    def _forward(self, event):
        if isinstance(event, Value):
            self.frame.run(Op("constant", 0, makes=[event]))
            self.frame.code.statements[-1]["once"] = True
        elif isinstance(event, Op):
            self.frame.run(event)
        else:
            self.frame.add({"free": [self.frame.of.pop(event)]})

    def _backward(self):
        loss = self.frame.slot()
        self.frame.add({"op": "loss", "in": [], "out": [{"slot": loss} | _bytes(4)], "ns": 0})
        self.frame.add({"node": self.ROOT, "id": self.nodes.end + 1,
                        "in": [self.edges[node, None] for node in self.first], "out": [loss],
                        "saved": [], "body": self._code(self.nodes.end + 1)})
        for value in self._dead():
            self.frame.of.pop(value, None)
        # Values that the log never releases live on in the main code.
        results = [loss, *self.frame.of.values()]
        self.frame.code.signature["results"] = results
        slots = list(range(1, len(results) + 1))
        self.program.main.statements += [
            {"call": self.FORWARD, "in": [], "out": slots}, {"backward": slots[:1]}]

    def _body(self, node):
        code = Code({"code": self._code(node), "kind": "body", "name": self._name(node)})
        frame = _Frame(code)
        frame.slot()  # for the leaf
        values = self.log.values
        given = [frame.slot(None if value is None else values[value])
                 for value in self._given(node)]
        saved = [frame.slot(values[value]) for value in self.packed[node]]
        if node < self.nodes.end:
            frame.run(self.nodes.ops[node])
        leaving = [frame.of[value.number] for value, _ in self.nodes.leaving[node]]
        code.signature.update(arguments=given, saved=saved, results=leaving or [None])
        self.program.codes.append(code)


def program_of(log, name):
    """Returns the program of a log, which `dtr_log.read` reads."""
    return _Lowering(log, name).lower()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m torch_ferry.dtr", description=__doc__.split(
        "\n\n", maxsplit=1)[0])
    parser.add_argument("log")
    parser.add_argument("-o", "--output", required=True, help="the program file to write")
    options = parser.parse_args(arguments)
    try:
        log = read(options.log)
        program_of(log, pathlib.Path(options.log).stem).write(options.output)
    except (LogError, OSError) as error:
        print(f"ferry: {error}", file=sys.stderr)
        return 7 if isinstance(error, WriteError) else 2
    print(f"{options.output}: {len(log.values)} tensors, at most {log.peak_bytes()} bytes at once, "
          f"{log.total_ns() / 1e6:.2f} ms of ops")
    return 0


if __name__ == "__main__":
    sys.exit(main())
