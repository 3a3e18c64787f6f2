"""Reads the operator logs of Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021).

A log has one training step, recorded on a GPU, as JSON lines whose values are strings:

    {"INSTRUCTION":"CONSTANT","NAME":"x1"}               and its {"INSTRUCTION":"MEMORY",…}
    {"INSTRUCTION":"CALL","NAME":"mm","ARGS":["x1","x2"],"RESULT":["x3"],"TIME":"687353"}
                                                          then MEMORY and ALIAS of each result
    {"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":["x3","x1"],"MUTATE":[0],"TIME":"9000"}
    COPY (one more name), COPY_FROM (another value for a name), RELEASE (a name less),
    ANNOTATE (START, BACKWARD)

The reader resolves the names. Its result has values, and the points where they die. Standard
library only.
"""

import json
from dataclasses import dataclass, field

_MOST_BYTES = 8 << 40
_MOST_NS = 10**15


class LogError(Exception):
    """The file is not an operator log."""


@dataclass
class Value:
    """A tensor. `storage` is the number of the first value with its storage; aliases share it."""

    number: int
    storage: int
    bytes: int


@dataclass
class Op:
    """An operator call. It makes the values `makes`, reads `reads`, and writes those of `reads` at
    the positions `writes` in place."""

    name: str
    ns: int
    reads: list = field(default_factory=list)
    makes: list = field(default_factory=list)
    writes: list = field(default_factory=list)


@dataclass
class Log:
    """The events of a step, in order. An event is an `Op`, a `Value` that exists from the start (a
    constant), or the number of a value that dies. A value that never dies is a result."""

    values: list = field(default_factory=list)
    forward: list = field(default_factory=list)
    backward: list = field(default_factory=list)

    def peak_bytes(self):
        """Returns the most bytes that are alive at the same time."""
        references, live, peak = {}, 0, 0
        for event in self.forward + self.backward:
            if isinstance(event, int):
                storage = self.values[event].storage
                references[storage] -= 1
                live -= 0 if references[storage] else self.values[storage].bytes
                continue
            for value in [event] if isinstance(event, Value) else event.makes:
                live += value.bytes if value.storage == value.number else 0
                references[value.storage] = references.get(value.storage, 0) + 1
            peak = max(peak, live)
        return peak

    def total_ns(self):
        return sum(event.ns for event in self.forward + self.backward if isinstance(event, Op))


class _Reader:
    def __init__(self):
        self.log = Log()
        self._events = self.log.forward
        self._named = {}  # name → value
        self._names = []  # number of names of each value
        self._waiting = []  # (name, op, bytes) of results whose MEMORY or ALIAS line has to come

    def take(self, line):
        kind = line["INSTRUCTION"]
        if self._waiting and kind not in ("MEMORY", "ALIAS"):
            raise LogError(f"expected MEMORY and ALIAS of {self._waiting[0][0]}")
        take = getattr(self, f"_{kind.lower()}", None)
        if take is None:
            raise LogError(f"no such instruction: {kind}")
        take(line)

    def finish(self):
        if self._waiting:
            raise LogError(f"expected MEMORY and ALIAS of {self._waiting[0][0]}")
        if self._events is self.log.forward:
            raise LogError("expected ANNOTATE BACKWARD before the end")
        return self.log

    def _annotate(self, line):
        if line["ANNOTATION"] == "BACKWARD":
            self._events = self.log.backward

    def _constant(self, line):
        self._waiting.append((line["NAME"], None, None))

    def _memory(self, line):
        if not self._waiting or self._waiting[0][0] != line["NAME"]:
            raise LogError("MEMORY of a tensor that is not being made")
        name, op, _ = self._waiting[0]
        size = _number(line["MEMORY"], _MOST_BYTES)
        if op is None:
            self._waiting.pop(0)
            self._events.append(self._make(name, size))
        else:
            self._waiting[0] = (name, op, size)

    def _alias(self, line):
        if not self._waiting or self._waiting[0][0] != line["NAME"] or self._waiting[0][2] is None:
            raise LogError("ALIAS of a tensor that is not being made, or before its MEMORY")
        name, op, size = self._waiting.pop(0)
        of = int(line["ALIAS"])
        if of >= len(op.reads):
            raise LogError(f"ALIAS {of} of an op with {len(op.reads)} arguments")
        op.makes.append(self._make(name, size, op.reads[of].storage if of >= 0 else None))

    def _make(self, name, size, storage=None):
        number = len(self.log.values)
        value = Value(number, number if storage is None else storage, size)
        self.log.values.append(value)
        self._names.append(0)
        self._bind(name, value)
        return value

    def _call(self, line):
        op = self._op(line)
        self._waiting += [(name, op, None) for name in line["RESULT"]]

    def _mutate(self, line):
        op = self._op(line)
        op.writes = [_number(position, len(op.reads) - 1) for position in line["MUTATE"]]

    def _op(self, line):
        op = Op(line["NAME"], _number(line["TIME"], _MOST_NS), [self._of(n) for n in line["ARGS"]])
        self._events.append(op)
        return op

    def _copy(self, line):
        self._bind(line["DST"], self._of(line["SRC"]))

    def _copy_from(self, line):
        value = self._of(line["SRC"])
        self._drop(line["DST"])
        self._bind(line["DST"], value)

    def _release(self, line):
        self._drop(line["NAME"])

    def _of(self, name):
        if name not in self._named:
            raise LogError(f"{name} is not alive")
        return self._named[name]

    def _bind(self, name, value):
        if name in self._named:
            raise LogError(f"{name} is alive already")
        self._named[name] = value
        self._names[value.number] += 1

    def _drop(self, name):
        value = self._of(name)
        del self._named[name]
        self._names[value.number] -= 1
        if self._names[value.number] == 0:
            self._events.append(value.number)


def _number(text, most):
    number = int(text)
    if not 0 <= number <= most:
        raise LogError(f"expected a number from 0 to {most}, got {text}")
    return number


def read(path):
    """Reads a log from a file. Raises LogError with the file and the line."""
    reader, number = _Reader(), 0
    try:
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if text.strip():
                    reader.take(json.loads(text))
        return reader.finish()
    except LogError as error:
        raise LogError(f"{path}:{number}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:  # JSON's errors are ValueErrors
        raise LogError(f"{path}:{number}: expected an instruction of an operator log: "
                       f"{type(error).__name__}: {error}") from error
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}") from error
