"""Repeats a layer of a program: a model of many equal layers is captured with a few of them.

`torch_ferry.few_layers` removes layers from the model, and `repeated` puts their statements back.
Backward needs no statements of its own, because the nodes of a program share their bodies.

Slots and nodes are numbered in the order of the statements. So if two layers in a row are alike,
their statements differ by constants: each slot that a layer makes is `width` above that of the
layer before it, and so are the tensors that it takes from that layer. All other slots are the same
in both. `repeated` checks this for two layers, and continues the sequence. The result is what the
capture of all layers writes, to the byte (tests/python/native/test_few_layers.py).
"""

import math

from .program import Code, Program

_SLOTS = ("in", "free", "saved", "slots", "arguments", "backward", "inputs")
_SLOT = ("view", "of", "record_use")
_NODE = ("id", "save")
_MODULE = ("enter", "leave")


class NotAlike(Exception):
    """The layers differ in more than their numbers, so they cannot be repeated."""


def repeated(program, layers, first, period, times):
    """Returns the program with `times` more groups of layers.

    layers  the name of the list of layers, such as "model.layers"
    first   the number of the first layer of the group that is repeated. The group before it must
            be alike, and one after it must exist
    period  the number of layers in a group

    Raises NotAlike."""
    for number, code in enumerate(program.codes):
        calls = len(_entries(code.statements, f"{layers}.{first}"))
        if calls > 1:  # such as a reference that is the model without its adapters
            raise NotAlike(f"{layers}.{first} is called {calls} times")
        if calls == 1:
            return _Repeat(program, number, layers, first, period, times).program()
    raise NotAlike(f"no code of the program calls {layers}.{first}")


def _entries(statements, module):
    """Returns the places of the statements that enter a module."""
    return [at for at, line in enumerate(statements) if line.get("enter") == module]


class _Repeat:
    """One call of `repeated`. `before` and `group` are the statements of two groups of layers, and
    `tail` those that follow."""

    def __init__(self, source, number, layers, first, period, times):
        self.source, self.number, self.times = source, number, times
        statements = source.codes[number].statements
        begin, middle, end = (_entries(statements, f"{layers}.{at}")[0] if at >= 0 else 0
                              for at in (first - period, first, first + period))
        self.head, self.tail = statements[:middle], statements[end:]
        self.group = statements[middle:end]
        before = statements[begin:middle]
        self.modules = {layers: (period, first + period - 1)}  # prefix → (step, last in the group)
        self.globals, self.moved = self._globals()
        made, made_before = _made(self.group), _made(before)
        if len(self.group) != len(before) or not made["slot"] or \
                bool(made["node"]) != bool(made_before["node"]):
            raise NotAlike(f"{layers}.{first} has other statements than the layer before it")
        # Without gradients a layer makes no nodes.
        self.least = {kind: min(made[kind], default=math.inf) for kind in made}
        self.width = {kind: self.least[kind] - min(made_before[kind]) if made[kind] else 0
                      for kind in made}
        for kind in made:
            if made[kind] != [at + self.width[kind] for at in made_before[kind]]:
                raise NotAlike(f"{layers}.{first} numbers its tensors otherwise")
        self.follows = {}  # slot → True if it goes up from group to group
        for line, other in zip(before, self.group):
            self._compare(line, other)

    # Two groups of statements are compared.

    def _compare(self, line, other):
        if list(line) != list(other):
            raise NotAlike(f"{line} and {other}")
        for (kind, one), (_, two) in zip(_parts(line), _parts(other), strict=True):
            if kind == "slot" and one is not None and two is not None:
                alike = self._relate(one, two)
            elif kind == "node":
                alike = two - one == self.width["node"]
            elif kind == "module":
                alike = self._learn(one, two)
            else:
                alike = one == two
            if not alike:
                raise NotAlike(f"{line} and {other}")

    def _relate(self, one, two):
        count = len(self.source.globals)
        if one < count or two < count:
            return one == two if one not in self.moved else self.moved[one] == two
        follows = two - one == self.width["slot"]
        return (follows or one == two) and self.follows.setdefault(two, follows) == follows

    def _learn(self, one, two):
        """Learns how the number in a module's name goes up, and returns False if the names differ
        in something else."""
        if one == two:
            return True
        prefix, at, rest = _numbered(one, two)
        if prefix is None:
            return False
        step, last = self.modules.get(prefix, (at[1] - at[0], 0))
        if prefix not in self.modules or prefix.split(".")[0] == "checkpoint":
            self.modules[prefix] = (step, max(last, at[1]))
        return step > 0 and rest

    # The new program.

    def _globals(self):
        """Returns the globals, with those of the new layers after those of the group, and where
        a global of the group before stands in the group."""
        (layers, (period, last)), = self.modules.items()
        moved, lines, run, places = {}, [], [], {}
        names = {line["name"]: line["global"] for line in self.source.globals}

        def add(line, owner):
            places[owner] = len(lines)
            lines.append(line)

        def close():
            for again in range(1, self.times + 1):
                for line in run:
                    name = _raised(line["name"], layers, period * again)
                    add({**line, "name": name}, (line["global"], again))
            run.clear()

        for line in self.source.globals:
            at = _number(line["name"], layers)
            if at is None or not last - period < at <= last:
                close()
            add(line, (line["global"], 0))
            if at is not None and last - period < at <= last:
                run.append(line)
            if at is not None and last - 2 * period < at <= last - period:
                moved[line["global"]] = names.get(_raised(line["name"], layers, period))
        close()
        self.places = places
        return [self._global(owner, lines[at], at) for owner, at in places.items()], moved

    def _global(self, owner, line, at):
        at_and_alias = {"global": at}
        if "alias" in line:
            at_and_alias["alias"] = self._place(line["alias"], owner[1])
        name = line["name"]
        if owner[1] == 0:
            (layers, (period, last)), = self.modules.items()
            number = _number(name, layers)
            if number is not None and number > last:
                name = _raised(name, layers, period * self.times)
        return {**line, **at_and_alias, "name": name}

    def _place(self, number, again):
        """Returns where a global of the source stands for this repetition of the group."""
        return self.places.get((number, again), self.places[number, 0])

    def _slot(self, slot, again=0, up=0):
        if slot is None:
            return None
        count = len(self.source.globals)
        if slot < count:
            return self._place(slot, again)
        return slot + len(self.globals) - count + up * self.width["slot"]

    def _copy(self, again):
        """Returns the statements of a further group."""
        def slot(number):
            return self._slot(number, again, again * self.follows.get(number, False))

        def node(number):
            return number + again * self.width["node"]

        def module(name):
            for prefix, (step, _) in self.modules.items():
                if _number(name, prefix) is not None:
                    return _raised(name, prefix, step * again)
            return name
        return [_mapped(line, slot, node, module) for line in self.group]

    def _after(self):
        """Returns functions that map slots, nodes and names of what follows the group."""
        least, width = self.least["slot"], self.width["slot"]

        def slot(number):
            if number is None or number < len(self.source.globals):
                return self._slot(number)
            follows = number >= least
            if least - width <= number < least:  # made by the group before
                if not self.follows.get(number - width):
                    raise NotAlike("a later layer uses a tensor of an earlier one")
                follows = True
            return self._slot(number, up=self.times * follows)

        def node(number):
            return number + self.times * self.width["node"] * (number >= self.least["node"])

        def module(name):
            for prefix, (step, last) in self.modules.items():
                at = _number(name, prefix)
                if at is not None and at > last:
                    return _raised(name, prefix, step * self.times)
            return name
        return slot, node, module

    def program(self):
        codes = []
        after = self._after()
        for number, code in enumerate(self.source.codes):
            if number != self.number:
                same = self._slot, _unchanged, _unchanged
                codes.append(Code(_mapped(code.signature, *same, ("results",)),
                                  [_mapped(line, *same) for line in code.statements]))
                continue
            head = [_mapped(line, self._slot, _unchanged, _unchanged)
                    for line in [*self.head, *self.group]]
            copies = [line for again in range(1, self.times + 1) for line in self._copy(again)]
            tail = [_mapped(line, *after) for line in self.tail]
            signature = _mapped(code.signature, *after, ("results",))
            codes.append(Code(signature, [*head, *copies, *tail]))
        return Program(self.source.name, dict(self.source.about), self.globals, codes)


def _unchanged(value):
    return value


def _mapped(line, slot, node, module, more=()):
    """Returns the line with other slots, nodes and names of modules. `more` are further keys with
    lists of slots."""
    result = {}
    for key, value in line.items():
        if key == "out":
            value = [{**each, "slot": slot(each["slot"])} if isinstance(each, dict) else slot(each)
                     for each in value]
        elif key in _SLOTS or key in more:
            value = [slot(each) for each in value]
        elif key in _SLOT:
            value = slot(value)
        elif key in _NODE:
            value = node(value)
        elif key in _MODULE:
            value = module(value)
        result[key] = value
    return result


def _parts(line):
    """Yields the slots, nodes and names of a line, and the rest, in order."""
    found = []

    def note(kind):
        return lambda value: found.append((kind, value))
    rest = _mapped(line, note("slot"), note("node"), note("module"))
    found.append(("rest", str(rest)))
    return found


def _made(statements):
    """Returns the slots and nodes that statements make, in order."""
    made = {"slot": [], "node": []}
    for line in statements:
        if "id" in line:
            made["node"].append(line["id"])
        if "view" in line:
            made["slot"].append(line["view"])
        for each in line.get("out", ()):
            made["slot"].append(each["slot"] if isinstance(each, dict) else each)
    return made


def _number(name, prefix):
    """Returns 3 for "layers.3.mlp" and the prefix "layers", or None."""
    if not name.startswith(prefix + "."):
        return None
    number = name[len(prefix) + 1:].partition(".")[0]
    return int(number) if number.isdecimal() else None


def _raised(name, prefix, by):
    number = _number(name, prefix)
    return f"{prefix}.{number + by}{name[len(prefix) + 1 + len(str(number)):]}"


def _numbered(one, two):
    """Returns (prefix, the two numbers, True if the rest is equal) of two names that differ in a
    number, or None as the prefix."""
    words, others = one.split("."), two.split(".")
    for at, (word, other) in enumerate(zip(words, others)):
        if word != other:
            if not (word.isdecimal() and other.isdecimal()):
                break
            return ".".join(words[:at]), (int(word), int(other)), words[at + 1:] == others[at + 1:]
    return None, None, False
