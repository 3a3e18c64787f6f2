"""What a brace opens, judged by the words before it, its head.

A scope (namespace, type), a function's body, or data (an initialiser, an enumeration, a concept).
It is no parser: what decides is how the head begins and how it ends, once nothing is left between
its brackets.
"""

import re
import typing

BRACKETS = re.compile(r"\([^(){}\[\]]*\)|\{[^(){}\[\]]*\}|\[[^(){}\[\]]*\]")
CLOSED = str.maketrans("(){}[]", "\1\2\3\4\5\6")
OPENED = str.maketrans("\1\2\3\4\5\6", "(){}[]")

LABELS = re.compile(r"\s*(?:(?:public|private|protected)\s*:(?!:)\s*)*")
TEMPLATE = re.compile(r"\btemplate\s*<")
LAMBDA = re.compile(
    r"(?:^|[=(,{&|?:]|\breturn)\s*(?P<start>\[\s*\])\s*(?:<[^{}]*>\s*)?(?:\(\s*\)\s*)?"
    r"(?:mutable\b\s*|noexcept\b\s*(?:\(\s*\)\s*)?|constexpr\b\s*)*(?:->[^={}]*)?$"
)
ASSIGNED = re.compile(r"(?<!operator)(?<![=!<>+\-*/%&|^])=(?!=)")
SCOPE = re.compile(r"(?:inline\s+)?(?:namespace|extern)\b\s*(?:\[\s*\]\s*)?(?P<name>[\w:]*)\s*$")
TYPE = re.compile(
    r"\b(?P<keyword>enum\s+class|enum\s+struct|enum|class|struct|union)\b\s*"
    r"(?:\[\s*\]\s*|alignas\s*\(\s*\)\s*|[A-Z_]{3,}(?:\(\s*\))?\s+)*(?P<name>[\w:]*)\s*(?P<of><?)"
)
BODY = re.compile(  # `) {`, `) const {`, `) -> T {`, `) requires C<T> {`, `) FERRY_COLD {`
    r"\(\s*\)\s*"
    r"(?:(?:const|noexcept|override|final|volatile|try|[A-Z_]{3,})\b\s*(?:\(\s*\)\s*)?|&&?\s*)*"
    r"(?:->.*|requires\b.*)?$",
    re.S,
)
MEMBERS = re.compile(r"\(\s*\)[^:]*(?<!:):(?!:)")  # X::X(...) : a_(...), b_{...}
NAME = re.compile(r"((?:[\w:]+::)?operator\s*(?:\(\s*\)|[^\s\w(]+)|[\w~:]+)\s*\(")
ALL_CAPITALS = re.compile(r"[A-Z_0-9]+\s*\(\s*([^()]*?)\s*[,)]\s*([\w ]*)")  # TEST(Suite, Name)


class Head(typing.NamedTuple):
    kind: str  # namespace, type, body, data, or member: data within the head of a body
    name: str
    begin: int  # of the first word of what the brace opens, in the head


def emptied(head):
    """As long, with blanks between its brackets."""

    def close(match):
        inner = " " * (len(match[0]) - 2)
        return f"{match[0][0]}{inner}{match[0][-1]}".translate(CLOSED)

    while (shorter := BRACKETS.sub(close, head)) != head:
        head = shorter
    return head.translate(OPENED)


def without_templates(head):
    """As long, with blanks in place of each template<...>."""
    while match := TEMPLATE.search(head):
        depth, end = 1, match.end()
        while depth and end < len(head):
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
        head = head[: match.start()] + " " * (end - match.start()) + head[end:]
    return head


def of_type(match, begin):
    name = "" if match["of"] else match["name"]  # a specialisation is no type of its own
    return Head("data" if match["keyword"] == "enum" and not name else "type", name, begin)


def body_name(head):
    """What a reader calls the function: its name, or Suite.Name of a test."""
    test = ALL_CAPITALS.match(head.strip())
    if test:
        return f"{test[1]}.{test[2]}" if test[2].strip() else test[1]
    name = NAME.search(emptied(without_templates(head)))
    return " ".join(name[1].split()) if name else "?"


def read_head(head, nested):
    """What the brace after these words opens; nested: in parentheses or in data."""
    begin = LABELS.match(head).end()
    plain = emptied(head)
    match = LAMBDA.search(plain)
    if match:
        return Head("body", "a lambda", match.start("start") if nested else begin)
    if nested:
        return Head("data", "", begin)
    plain = without_templates(plain)
    words = plain[begin:].strip()
    if match := SCOPE.match(words):
        return Head("namespace", match["name"], begin)
    if ASSIGNED.search(plain):
        return Head("data", "", begin)
    match = TYPE.search(plain, begin)
    if match and not BODY.search(plain):
        return of_type(match, begin)
    if MEMBERS.search(plain) and re.search(r"[\w>]$", words) and not BODY.search(plain):
        return Head("member", "", begin)
    if BODY.search(plain) or MEMBERS.search(plain):
        return Head("body", body_name(head[begin:]), begin)
    return Head("data", "", begin)
