"""Writes a source file with all of its mutants, of which one is chosen at run time (chosen.h).

    a < b            (is(17) ? (a <= b) : (a < b))
    f(x);            if (!is(18)) f(x);
    return y;        if (is(19)) return {}; return y;
    lock_guard l(m); Unless l(is(20), [&] { return lock_guard(m); });

The original text keeps its lines, so errors of the compiler lead to the mutants that do not compile
(`blamed`).
"""

import bisect
import dataclasses


@dataclasses.dataclass
class Rendered:
    text: str
    lines: list  # offset of each line
    marks: list  # (start, end, numbers): text of these mutants, or a place that contains them

    def blamed(self, line, column):
        """The mutants that an error at this position is about: those of the innermost mark."""
        at = self.lines[line - 1] + column - 1
        around = [mark for mark in self.marks if mark[0] <= at < mark[1]]
        return min(around, key=lambda mark: mark[1] - mark[0])[2] if around else []


def asked(place, form):
    ask = "is_at_run_time" if place.constexpr else "is"
    condition = f"ferry::mutation::{ask}({form.number})"
    return f"({form.unless} && {condition})" if form.unless else condition


def opening(place):
    """The text before a place, as [(text, number)]."""
    parts = []
    for form in place.forms:
        if place.shape in ("before", "returned"):
            parts.append((f"if ({asked(place, form)}) {form.text} ", form.number))
        elif place.shape == "statement":
            parts.append((f"if (!{asked(place, form)}) ", form.number))
        elif place.shape == "guard":
            parts.append((f"ferry::mutation::Unless {form.text}({asked(place, form)}, "
                          "[&] { return ", form.number))
        else:
            parts.append((f"{asked(place, form)} ? ({form.text}) : ", form.number))
    if place.shape == "declared":
        return [("; ", 0), *parts, (f"static_cast<bool>({place.name})", 0)]
    if place.shape in ("condition", "expression"):
        last = "static_cast<bool>(" if place.shape == "condition" else "("
        return [("(", 0), *parts, (last, 0)]
    if place.braces or place.shape == "returned":
        return [("{ ", 0), *parts]
    return parts


def closing(place):
    if place.shape in ("condition", "expression"):
        return "))"
    if place.shape == "guard":
        return "; });"
    return " }" if place.braces or place.shape == "returned" else ""


ORDER = {"before": 0, "returned": 1, "statement": 1, "guard": 2, "condition": 3, "declared": 3,
         "expression": 4}


def render(source, places, include):
    """`source` is bytes. `include` is a line that is added at the beginning."""
    edits = []  # (offset, rank, text, mark)
    for index, place in enumerate(places):
        length = place.end - place.start
        rank = (1, -length, ORDER[place.shape])
        if place.shape == "before":
            rank = (1, -len(source), 0)
        edits.append((place.start, rank, "open", index))
        if length > 0:
            edits.append((place.end, (0, length, -ORDER[place.shape]), "close", index))
    edits.sort(key=lambda edit: edit[:2])
    return Writer(source, places, include).write(edits)


class Writer:
    def __init__(self, source, places, include):
        self.source, self.places = source, places
        self.out, self.length, self.marks, self.opened = [], 0, [], {}
        self.include = include
        self.dropped = sorted((p.name[0], p.name[1]) for p in places if p.shape == "guard")

    def put(self, text):
        self.out.append(text)
        self.length += len(text)

    def copy(self, start, end):
        for a, b in self.dropped:
            if start <= a and b <= end:
                self.put(self.source[start:a].decode())
                start = b
        self.put(self.source[start:end].decode())

    def open(self, index):
        place = self.places[index]
        self.opened[index] = self.length
        for text, number in opening(place):
            start = self.length
            self.put(text)
            if number:
                self.marks.append((start, self.length, [number]))

    def close(self, index):
        place = self.places[index]
        end = closing(place)
        if place.shape == "guard":  # its own semicolon was copied
            self.out.append(self.out.pop().rstrip().removesuffix(";"))
            self.length = sum(len(text) for text in self.out)
        self.put(end)
        self.marks.append((self.opened[index], self.length, [f.number for f in place.forms]))

    def write(self, edits):
        at = 0
        for offset, _, what, index in edits:
            self.copy(at, offset)
            at = offset
            (self.open if what == "open" else self.close)(index)
        self.copy(at, len(self.source))
        text = "".join(self.out)
        first = text.index("#pragma once\n") if "#pragma once\n" in text else 0
        # It goes on an existing line, so that line numbers do not change.
        text, shift, after = insert(text, first, self.include)
        marks = [(a + shift * (a >= after), b + shift * (b > after), n) for a, b, n in self.marks]
        lines = [0] + [i + 1 for i, char in enumerate(text) if char == "\n"]
        return Rendered(text, lines, marks)


def insert(text, at, include):
    """Puts the include on the first empty line after #pragma once, or at the beginning."""
    empty = text.find("\n\n", at)
    after = empty + 1 if at or text.startswith("#pragma once") else 0
    added = include if after else include + "\n"
    return text[:after] + added + text[after:], len(added), after
