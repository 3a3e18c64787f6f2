"""Finds the mutants of a C++ file in the compiler's syntax tree.

`places(path, root)` parses a file with libclang (Debian's python3-clang) and returns its places. A
place is a range of the text with one or more mutants. Each mutant says how the range reads in it:

    condition    negated, true or false; an operand of && or || becomes the value that leaves the
                 result to the other operand
    declared     the same, for a condition that declares a variable
    expression   another operator, another constant, or two neighbouring arguments swapped
    statement    deleted, including loops over a range
    before       a return before a statement, or at the start of a function
    returned     an empty value instead of the returned one
    guard        a lock or guard of a scope is removed

In a template, expressions that depend on its parameters have no types. A mutant that needs types is
made anyway, and dropped if it does not compile (overlay.py).
"""

import bisect
import dataclasses
import re
import sys

DEBIAN = "/usr/lib/python3/dist-packages"

OTHERS = {
    "<": ("<=", "boundary"), "<=": ("<", "boundary"),
    ">": (">=", "boundary"), ">=": (">", "boundary"),
    "==": ("!=", "comparison"), "!=": ("==", "comparison"),
    "&&": ("||", "logic"), "||": ("&&", "logic"),
    "+": ("-", "arithmetic"), "-": ("+", "arithmetic"),
    "*": ("/", "arithmetic"), "/": ("*", "arithmetic"), "%": ("*", "arithmetic"),
    "+=": ("-=", "arithmetic"), "-=": ("+=", "arithmetic"),
    "++": ("--", "arithmetic"), "--": ("++", "arithmetic"),
    "min": ("max", "arithmetic"), "max": ("min", "arithmetic"),
}
FUNCTIONS = {"CXX_METHOD", "FUNCTION_DECL", "FUNCTION_TEMPLATE", "CONSTRUCTOR", "DESTRUCTOR",
             "CONVERSION_FUNCTION"}
# Values that the compiler computes, and types, have no mutants.
CONSTANT = {"STATIC_ASSERT", "ENUM_DECL", "TYPE_REF", "TEMPLATE_REF", "NAMESPACE_REF",
            "TYPE_ALIAS_DECL", "TYPEDEF_DECL", "TYPE_ALIAS_TEMPLATE_DECL",
            "TEMPLATE_TYPE_PARAMETER", "TEMPLATE_NON_TYPE_PARAMETER", "CONCEPT_DECL",
            "CXX_BASE_SPECIFIER", "?"}
DELETED = {"CALL_EXPR": "call", "BINARY_OPERATOR": "assignment", "UNARY_OPERATOR": "step",
           "COMPOUND_ASSIGNMENT_OPERATOR": "assignment", "CXX_FOR_RANGE_STMT": "loop",
           "BREAK_STMT": "break", "CONTINUE_STMT": "continue", "CXX_THROW_EXPR": "throw",
           "CXX_DELETE_EXPR": "delete"}


@dataclasses.dataclass
class Form:
    kind: str
    text: str  # the place's text in the mutant; empty for a deleted statement
    number: int = 0
    unless: str = ""  # a condition that must hold at compile time


@dataclasses.dataclass
class Place:
    shape: str
    start: int
    end: int
    line: int
    forms: list
    constexpr: bool = False
    braces: bool = False  # a statement that is not directly in a block
    name: object = None  # of a guard: the range of its name; of a declared variable: its name


@dataclasses.dataclass(frozen=True)
class Within:
    """The context of a cursor."""

    body: bool = False  # in a function's body or an initialiser, which runs
    returns: str = ""  # void, bool, other; "" outside functions
    constexpr: bool = False


class Text:
    """The file as tokens, without comments."""

    def __init__(self, unit, path):
        self.bytes = path.read_bytes()
        found = [t for t in unit.get_tokens(extent=unit.cursor.extent) if t.kind.name != "COMMENT"]
        self.starts = [t.extent.start.offset for t in found]
        self.ends = [t.extent.end.offset for t in found]
        self.words = [t.spelling for t in found]

    def within(self, start, end):
        """The indices of the tokens in a range."""
        return range(bisect.bisect_left(self.starts, start), bisect.bisect_left(self.starts, end))

    def of(self, start, end):
        return " ".join(self.words[i] for i in self.within(start, end))

    def between(self, left, right):
        """The one token between two cursors, without brackets; "" if there is not exactly one."""
        words = [self.words[i] for i in self.within(left.extent.end.offset,
                                                    right.extent.start.offset)]
        words = [word for word in words if word not in "()"]
        return words[0] if len(words) == 1 else ""

    def semicolon(self, end):
        """The end of the statement that ends here, or None."""
        i = bisect.bisect_left(self.starts, end)
        return self.ends[i] if i < len(self.words) and self.words[i] == ";" else None


def kind(cursor):
    try:
        return cursor.kind.name
    except ValueError:  # newer than the bindings
        return "?"


def children(cursor):
    return [c for c in cursor.get_children() if c.extent.end.offset > c.extent.start.offset]


def span(cursor):
    return cursor.extent.start.offset, cursor.extent.end.offset


def gives_values(body):
    """Whether a function returns a value. Lambdas in it have their own returns."""
    return any((kind(c) == "RETURN_STMT" and children(c)) or
               (kind(c) != "LAMBDA_EXPR" and gives_values(c)) for c in children(body))


class Finder:
    def __init__(self, unit, path):
        self.text = Text(unit, path)
        self.name = str(path)
        self.found = []

    def place(self, shape, start, end, within, forms, **more):
        line = self.text.bytes.count(b"\n", 0, start) + 1
        self.found.append(Place(shape, start, end, line, forms, within.constexpr, **more))

    # Declarations.

    def declaration(self, cursor, within):
        name = kind(cursor)
        if name in CONSTANT:
            return
        if name in FUNCTIONS:
            self.function(cursor)
            return
        if name in ("FIELD_DECL", "VAR_DECL"):
            self.variable(cursor, Within(body=True))
            return
        for child in children(cursor):
            file = child.location.file
            if file and file.name == self.name:
                self.declaration(child, within)

    def variable(self, cursor, within):
        """Adds the mutants of the variable's initialiser."""
        head = self.text.of(cursor.extent.start.offset, cursor.extent.start.offset + 60)
        if re.match(r"(static |inline )*constexpr ", head):
            return
        for child in children(cursor):
            if kind(child) in CONSTANT:
                continue
            if cursor.type.spelling in ("bool", "const bool"):
                self.condition(child, within, "variable")
            self.expression(child, within)

    def function(self, cursor):
        bodies = [c for c in children(cursor) if kind(c) == "COMPOUND_STMT"]
        start, end = span(cursor)
        head = self.text.of(start, span(bodies[0])[0] if bodies else end)
        constant = "constexpr" in head.split()
        within = Within(True, self.returns(cursor, bodies), constant)
        for child in children(cursor):
            if kind(child) == "PARM_DECL":
                self.variable(child, within)
            elif kind(child) == "COMPOUND_STMT":
                self.body(child, within)
            elif kind(child) not in CONSTANT and kind(cursor) == "CONSTRUCTOR":
                self.expression(child, within)

    def returns(self, cursor, bodies):
        if kind(cursor) in ("CONSTRUCTOR", "DESTRUCTOR"):
            return "void"
        result = cursor.result_type.spelling
        if result in ("void", "bool"):
            return result
        return "other" if bodies and gives_values(bodies[0]) else "void"

    # Statements.

    def body(self, block, within):
        inside = children(block)
        for i, statement in enumerate(inside):
            start = span(statement)[0]
            if within.returns == "void":
                if i > 0 or len(inside) > 1:
                    self.place("before", start, start, within, [Form("early return", "return;")])
            elif i == 0 and kind(statement) != "RETURN_STMT":
                texts = ("true", "false") if within.returns == "bool" else ("{}",)
                forms = [Form("early return", f"return {text};") for text in texts]
                self.place("before", start, start, within, forms)
        self.block(block, within)

    def block(self, block, within):
        inside = children(block)
        for i, statement in enumerate(inside):
            last = i + 1 == len(inside)
            self.guard(statement, block, within)
            self.statement(statement, within, last=last)

    def statement(self, cursor, within, last=False, braces=False):
        name = kind(cursor)
        if self.text.of(*span(cursor)).startswith("invariant ("):
            return  # an assertion changes nothing; a test shows that each can fail
        if name in DELETED:
            self.delete(cursor, within, last, braces)
        if name == "COMPOUND_STMT":
            self.block(cursor, within)
        elif name == "IF_STMT":
            self.branch(cursor, within)
        elif name in ("WHILE_STMT", "FOR_STMT", "CXX_FOR_RANGE_STMT"):
            self.loop(cursor, within)
        elif name in ("CASE_STMT", "DEFAULT_STMT"):
            self.statement(children(cursor)[-1], within, last=last, braces=True)
        elif name == "SWITCH_STMT":
            for child in children(cursor):
                self.statement(child, within)
        elif name in ("CXX_TRY_STMT", "CXX_CATCH_STMT"):
            for child in children(cursor):
                if kind(child) in ("COMPOUND_STMT", "CXX_CATCH_STMT"):
                    self.statement(child, within)
        elif name == "DECL_STMT":
            for child in children(cursor):
                if kind(child) == "VAR_DECL":
                    self.variable(child, within)
        elif name == "RETURN_STMT":
            self.returned(cursor, within, last)
        else:
            self.expression(cursor, within)

    def delete(self, cursor, within, last, braces):
        start, end = span(cursor)
        name = kind(cursor)
        if name == "BINARY_OPERATOR" and "=" not in self.text.of(start, end).split():
            return
        # Without the throw, a function with a result could end without one. That is undefined, and
        # the compiler assumes that it cannot happen.
        if name == "CXX_THROW_EXPR" and last and within.returns != "void":
            return
        loops = DELETED[name] == "loop"
        end = end if loops else self.text.semicolon(end)
        if end is not None:
            self.place("statement", start, end, within, [Form(f"{DELETED[name]} deleted", "")],
                       braces=braces)

    def branch(self, cursor, within):
        inside = children(cursor)
        start = span(cursor)[0]
        tokens = self.text.within(start, span(cursor)[1])
        constant = len(tokens) > 1 and self.text.words[tokens[1]] == "constexpr"
        close = self.closing(tokens)
        heads = [c for c in inside if span(c)[0] < close]
        for head in heads:  # declarations
            if kind(head) == "DECL_STMT":
                self.statement(head, within)
            elif kind(head) == "VAR_DECL":
                self.variable(head, within)
        head = heads[-1]
        declared = [c for c in heads if kind(c) == "VAR_DECL"]
        if declared and ";" not in self.text.of(start, close).split():
            self.declared(declared[0], close, within)
        elif not constant and not declared:
            self.condition(head, within, "if")
            self.expression(head, within)
        for child in inside:
            if span(child)[0] >= close:
                self.statement(child, within, braces=True)

    def declared(self, variable, close, within):
        """Adds mutants of a condition that tests the variable which it declares."""
        name = variable.spelling
        made = {"negated": f"!({name})", "true": "true", "false": "false"}
        forms = [Form(f"condition {how}", form) for how, form in made.items()]
        self.place("declared", close, close, within, forms, name=name)

    def closing(self, tokens):
        """Where the first bracket of these tokens closes."""
        depth = 0
        for i in tokens:
            depth += {"(": 1, ")": -1}.get(self.text.words[i], 0)
            if depth == 0 and self.text.words[i] == ")":
                return self.text.starts[i]
        return self.text.starts[tokens[-1]]

    def loop(self, cursor, within):
        inside = children(cursor)
        close = self.closing(self.text.within(*span(cursor)))
        heads = [c for c in inside if span(c)[0] < close]
        if kind(cursor) == "WHILE_STMT" and kind(heads[0]) == "VAR_DECL":
            self.place("statement", *span(cursor), within, [Form("loop deleted", "")], braces=True)
            heads = heads[:1]
        for head in heads:
            if kind(head) in ("DECL_STMT", "VAR_DECL"):
                (self.statement if kind(head) == "DECL_STMT" else self.variable)(head, within)
            elif kind(cursor) != "CXX_FOR_RANGE_STMT":
                self.expression(head, within)
                if kind(cursor) == "WHILE_STMT" or self.is_test(cursor, head):
                    # The condition is never made true, because most loops would not end.
                    self.condition(head, within, "loop")
        for child in inside:
            if span(child)[0] >= close:
                self.statement(child, within, braces=True)

    def is_test(self, loop, head):
        """Whether it is the second of a for's three parts."""
        before = self.text.of(span(loop)[0], span(head)[0])
        return before.endswith(";") and before.count(";") == 1

    def returned(self, cursor, within, last):
        inside = children(cursor)
        if not inside:
            if not last:
                end = self.text.semicolon(span(cursor)[1])
                self.place("statement", span(cursor)[0], end, within, [Form("return deleted", "")],
                           braces=True)
            return
        value = inside[0]
        if within.returns == "bool":
            self.condition(value, within, "result")
        elif self.text.of(*span(value)) not in ("nullptr", "{}", "0", "std :: nullopt"):
            start, end = span(cursor)
            self.place("returned", start, self.text.semicolon(end), within,
                       [Form("empty result", "return {};")])
        self.expression(value, within)

    def guard(self, statement, block, within):
        """Adds the mutant without a guard: a variable that its block never names."""
        variables = children(statement) if kind(statement) == "DECL_STMT" else []
        if len(variables) != 1 or kind(variables[0]) != "VAR_DECL":
            return
        variable = variables[0]
        tokens = self.text.within(*span(statement))
        if variable.spelling not in [self.text.words[i] for i in tokens]:
            return
        at = next(i for i in tokens if self.text.words[i] == variable.spelling)
        later = self.text.within(span(statement)[1], span(block)[1])
        opens = self.text.words[at + 1] in "({"
        first = tokens[1] if self.text.words[tokens[0]] == "const" else tokens[0]
        if not opens or variable.spelling in [self.text.words[i] for i in later]:
            return
        name = (self.text.starts[at], self.text.ends[at])
        self.place("guard", self.text.starts[first], self.text.ends[tokens[-1]], within,
                   [Form("guard removed", variable.spelling)], name=name)

    # Expressions.

    def expression(self, cursor, within):
        name = kind(cursor)
        if name in CONSTANT:
            return
        if name == "LAMBDA_EXPR":
            self.lambda_(cursor, within)
            return
        if name in ("INTEGER_LITERAL", "CXX_BOOL_LITERAL_EXPR"):
            self.constant(cursor, within)
        elif name in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "CALL_EXPR"):
            self.operator(cursor, within)
            self.arguments(cursor, within)
        elif name == "UNARY_OPERATOR":
            self.unary(cursor, within)
        elif name == "CONDITIONAL_OPERATOR":
            self.condition(children(cursor)[0], within, "choice")
        for child in children(cursor):
            self.expression(child, within)

    def lambda_(self, cursor, within):
        for child in children(cursor):
            if kind(child) == "COMPOUND_STMT":
                returns = "other" if gives_values(child) else "void"
                self.body(child, dataclasses.replace(within, returns=returns))

    def condition(self, cursor, within, of):
        """Adds the mutants of a condition. That of a loop is not made true."""
        start, end = span(cursor)
        text = self.text.of(start, end)
        if text in ("true", "false"):
            return
        made = {"negated": f"!({text})", "true": "true", "false": "false"}
        if of == "loop":
            made = {"false": "false"}
        elif of in ("&&", "||"):
            value = "true" if of == "&&" else "false"
            made = {value: value}
        forms = [Form(f"condition {name}", form) for name, form in made.items()]
        self.place("condition", start, end, within, forms)

    def operator(self, cursor, within):
        inside = children(cursor)
        start, end = span(cursor)
        if kind(cursor) == "CALL_EXPR":
            first = inside[0] if inside else None
            name = self.text.words[self.text.within(*span(first))[-1]] if first else ""
            if name in ("min", "max"):
                self.renamed(cursor, first, name, within)
            if len(inside) != 3 or not inside[1].spelling.startswith("operator"):
                return
            inside = [inside[0], inside[2]]
        if len(inside) != 2:
            return
        left, right = inside
        word = self.text.between(left, right)
        if word not in OTHERS:
            return
        other, what = OTHERS[word]
        text = f"{self.text.of(start, span(left)[1])} {other} {self.text.of(span(right)[0], end)}"
        if word in ("&&", "||"):
            for side in (left, right):
                self.condition(side, within, word)
        self.place("expression", start, end, within, [Form(f"{what} {word} as {other}", text)])

    def renamed(self, call, called, name, within):
        """Swaps min and max."""
        start, end = span(call)
        at = [i for i in self.text.within(*span(called)) if self.text.words[i] == name][-1]
        other, what = OTHERS[name]
        text = " ".join([self.text.of(start, self.text.starts[at]), other,
                         self.text.of(self.text.ends[at], end)])
        self.place("expression", start, end, within, [Form(f"{what} {name} as {other}", text)])

    def unary(self, cursor, within):
        start, end = span(cursor)
        words = self.text.of(start, end).split()
        operand = self.text.of(*span(children(cursor)[0]))
        if words[0] in ("++", "--"):
            self.place("expression", start, end, within,
                       [Form("arithmetic", f"{OTHERS[words[0]][0]} {operand}")])
        elif words[-1] in ("++", "--"):
            self.place("expression", start, end, within,
                       [Form("arithmetic", f"{operand} {OTHERS[words[-1]][0]}")])
        elif words[0] == "-":
            self.place("expression", start, end, within, [Form("arithmetic - dropped", operand)])

    def constant(self, cursor, within):
        start, end = span(cursor)
        text = self.text.of(start, end)
        others = {"true": "false", "false": "true", "0": "1", "1": "0"}
        other = others.get(text, f"{text} + 1")
        if text.isdigit() or text in others:
            self.place("expression", start, end, within, [Form(f"constant {text}", other)])

    def arguments(self, cursor, within):
        """Swaps two neighbouring arguments. The compiler checks that their types are equal."""
        start, end = span(cursor)
        given = children(cursor)[1:]
        if kind(cursor) != "CALL_EXPR" or self.text.words[self.text.within(start, end)[-1]] != ")":
            return
        for left, right in zip(given, given[1:]):
            if self.text.between(left, right) != ",":
                continue
            a, b = self.text.of(*span(left)), self.text.of(*span(right))
            if a == b or "[" in (a[0], b[0]):
                continue
            text = " ".join([self.text.of(start, span(left)[0]), b, ",", a,
                             self.text.of(span(right)[1], end)])
            alike = f"ferry::mutation::alike<decltype({a}), decltype({b})>()"
            self.place("expression", start, end, within,
                       [Form("arguments swapped", text, unless=alike)])


def libclang():
    """Imports Debian's bindings into any Python. Raises ImportError or LibclangError."""
    try:
        from clang import cindex
    except ImportError:
        sys.path.append(DEBIAN)
        from clang import cindex
    cindex.Index.create()
    return cindex


def places(path, root, arguments=()):
    """The places of a file, in order. `root` is the folder of its includes."""
    cindex = libclang()
    unit = cindex.Index.create().parse(
        str(path), args=["-x", "c++", "-std=c++20", f"-I{root}", *arguments])
    wrong = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if wrong:
        raise ValueError(f"{path}: libclang cannot read it: {wrong[0]}")
    finder = Finder(unit, path)
    finder.declaration(unit.cursor, Within())
    return merged(finder.found)


def merged(found):
    """Merges places with the same range and shape, and removes double forms."""
    by_range = {}
    for place in sorted(found, key=lambda p: (p.start, -p.end)):
        known = by_range.setdefault((place.shape, place.start, place.end), place)
        if known is not place:
            known.forms += place.forms
    for place in by_range.values():
        place.forms = list({form.text: form for form in reversed(place.forms)}.values())[::-1]
    conditions = {(p.start, p.end) for p in by_range.values() if p.shape == "condition"
                  if any(form.kind == "condition negated" for form in p.forms)}
    for place in by_range.values():  # turning == into != is the same as negating the condition
        if place.shape == "expression" and (place.start, place.end) in conditions:
            place.forms = [f for f in place.forms if not f.kind.startswith("comparison")]
    return [place for place in by_range.values() if place.forms]
