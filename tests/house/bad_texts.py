"""Bad trees: sizes, drawings, documents, pages, mirror, throws, parts, formatting."""

import re

from bad_case import B, Case, alone, fault, header, rooms

BODY = "  g();\n" * 69  # with the line before it and that of the closing brace: one too many
LESS = BODY.removeprefix("  g();\n")
WIDE = "x" * 50 + " " + "x" * 50


def long(name, line, before, body=BODY, after="}"):
    """A function that is too long, from this line of its file on."""
    return fault(name, f"namespace ferry {{\n{before}\n{body}{after}\n}}\n", line)


FUNCTIONS = [
    long("a function", 2, "void f() {"),
    long("a function of two lines", 3, "int x = 0;\nvoid f(int a,\n       int b) {", LESS),
    long("a method", 4, "struct A {\n public:\n  A f() noexcept {", after="}\n};"),
    long("a constructor", 2, "A::A(int a) : a_(a), b_{a}, c_{[] { return 1; }()} {"),
    long("one on two lines", 2, "A::A()\n    : a_([] { return 1; }()) {", LESS),
    long("a template", 2, "template <class T, int N = f(2)>\nauto f() -> T {", LESS),
    long("an operator", 2, "bool operator==(A a, A b) {"),
    long("a lambda", 2, "const auto f = [](int x) -> int {", after="};"),
    long("in a table", 5, "A a[] = {\n  {1, [] { return 1; }},\n  {2,\n   [] {", after="}}};"),
    long("a lambda for a parameter", 2, "TESTS(A, [](int i) {", after="});"),
    long("a test", 2, "TEST(Suite, Name) {"),
    long("a test of a property", 2, "RC_GTEST_PROP(Suite, Name, (int a)) {"),
    long("after strings", 3, 'auto s = R"x(}})")x" "{\\"{";  // {\nvoid f(char c = \'{\') {'),
    long("after numbers", 2, "int a = 1'0; void f(char c = 'a') {"),
    long("after a directive", 4, "#define F { \\\n  {\n/* { */ void f() {"),
    long("after a comment", 4, "#define F /* {\n { */\nvoid f() {"),
    long("one of two", 5, "#if A\nvoid f() {\n#else\nvoid f(int) {\n#endif", LESS),
    long("in extern", 3, 'extern "C" {\nvoid f() {', after="}\n}"),
    fault("one of Python", "def f():\n" + "    g()\n" * 70, 1, path="a.py"),
]

FILES = [
    fault("a long file", "x\n" * 601, 601, path="a.md"),
    Case(
        "more than a few that are rather long",
        alone({f"shared/a/b{i}.h": header(*["//"] * 450) for i in range(6)}),
        [f"shared/a/b{i}.h:451" for i in range(6)],
    ),
    fault("columns of C++", header(f"// {WIDE}"), 1),
    fault("columns of Python", f'"""Says\n{WIDE}\n"""\nX = "{WIDE}"\n', 2, 4, path="a.py"),
    fault("columns of CMake", f"#\n# {WIDE}\n", 2, path="CMakeLists.txt"),
    fault("columns of a script", f"#!/bin/sh\n: {WIDE}\n", 2, path="dev"),
]


def says(*lines):
    return header(*[f"// {line}" for line in lines])


UNSAFE = {B: says("Why.", "", "a ──▶ b", "└──▶ c"), ".clang-format": "ColumnLimit: 100\n"}
MOVED = says(
    "          one       two       three",
    "here      1         2         3",
    "there     4         5         six",
    "and more there     7         8         9",
)

DRAWINGS = [
    Case("a drawing that is not safe", alone(UNSAFE), [f"{B}:3"]),
    fault("a stroke from nothing", says("a ──┐", "    └── b", "", "a", "b    └── c"), 5),
    fault("a stroke into nothing", says("a ──┐", "    └── b", "", "a ──┐", "b"), 4),
    fault("a head alone", says("a ── b", "         ▲", "c ── d"), 2),
    fault("a table with a line moved", MOVED, 4),
]

PAGE = {"cmake/a.md": ""}

DOCUMENTS = [
    fault("a path", says("See shared/a/c.h.", "And shared/a/a."), 1),
    fault("a page", says("As docs/design.md says."), 1),
    Case("a page in capitals", alone({B: says("As cmake/MY.md says."), **PAGE}), [f"{B}:1"]),
    fault("a pattern", says("shared/*/c.h", "shared/a/{a,b,c}.h"), 1, 2),
    fault("a path in a document", "In `shared/b`.\n", 1, path="a.md"),
    fault("one in Python", '"""Says\nshared/b."""\n\nX = 1  # of shared/c\n', 2, 4, path="a.py"),
    fault("a path in a script", "#!/bin/sh\n# shared/b\n", 2, path="dev"),
    fault("codes first", says("A15: why.", "L3, A13: why."), 1, 2),
    fault("codes aside", says("Why (L3, A13).", "Why (hazard A10).", "And outside (A5)."), 1, 2, 3),
]

HEADINGS = "# Two words\n\n## `a.h` twice\n\n## `a.h` twice\n\n```\n# no heading\n```\n"


def links(name, text, *lines):
    """A page with links, beside one with headings."""
    case = fault(name, text, *lines, path="shared/a/a.md")
    return case._replace(files={**case.files, "shared/a/b.md": HEADINGS})


PAGES = [
    links("a link", "[a](a.h) [b](../b.h)\n", 1),
    links("a link on two lines", "See [a\nb](c.h).\n", 1),
    links("a link to no heading", "[a](b.md#two-words) [b](b.md#two)\n", 1),
    links("a link to a third heading", "[a](b.md#ah-twice-1)\n[b](b.md#ah-twice-2)\n", 2),
    links("a link to no heading of the page's own", "# A\n\n[a](#a)\n[b](#b)\n", 4),
    links("a heading in an example", "[a](b.md#no-heading)\n", 1),
    fault("prose that is wide", f"a\n{WIDE}\n", 2, path="a.md"),
    fault("a list that is wide", f"* a\n    {WIDE}\n", 2, path="a.md"),
    fault("prose after an example", f"```\n{WIDE}\n```\n{WIDE}\n", 4, path="a.md"),
    fault("wide beside a link", f"[a](a.md) {WIDE}\n", 1, path="a.md"),
    fault("a README that is long", "a b c\n" * 234, 234, path="README.md"),
    fault("a guide that is long", "a b c d e f\n" * 301, 301, path="docs/a.md"),
    fault("an ARCHITECTURE that is long", "a b c d e f\n" * 584, 584, path="ARCHITECTURE.md"),
]


RECORD = "# A\n\n| a | 1.024 |\n\n## B\n\n1,250 of a\n\n### C\n\n    12 %\n\n## D\n\n5 s\n"
A_LINK = re.compile(r"A(#?\w*)\)")


def cites(name, text, *lines):
    """A page that cites figures, beside the record that has them: A in the text."""
    page = A_LINK.sub(r"../bench/results/a.md\1)", text)
    case = fault(name, page, *lines, path="docs/a.md")
    return case._replace(files={**case.files, "bench/results/a.md": RECORD})


CITED = [
    cites("a figure that a table has not", "[1.024](A) [6](a.md)\n`[6](A)` [1.023](A)\n", 2),
    cites("a part of a figure", "[1.02](A)\n[250](A)\n[1,250](A#b) [12\n%](A#b)\n", 1, 2),
    cites("a figure with another unit", "[5 ms](A) [6 of 7](A)\n[5 s](A)\n", 1),
    cites("a figure of another section", "[5 s](A#d)\n[5 s](A#b)\n", 2),
]


def misplaced(name, room, test):
    """A test that stands where no unit has its name."""
    table = rooms("shared/a : ferry :", f"{room} : * :")
    return Case(name, alone({**table, f"{room}/{test}": ""}), [f"{room}/{test}:1"])


MIRROR = [
    misplaced("a test of nothing", "tests/shared/a", "ab_test.cpp"),
    misplaced("a test of no room", "tests/other", "a_prop.cpp"),
    Case(
        "a part of the core without a test",
        {
            **rooms("shared/offload : ferry :", "tests/shared/offload : * :"),
            **{f"shared/offload/{name}.h": header() for name in ("core", "parcel", "tracker")},
            "tests/shared/offload/core_test.cpp": "",
        },
        ["shared/offload/parcel.h:1"],
    ),
]

KIND = "class Odd : public ferry::Error {};"

THROWS = [
    fault("a kind of error alone", header(KIND, "void f() {", "  throw Odd(1);", "}"), 3),
    fault("one of that kind", header(KIND, "struct B final : Odd {};", "[] { throw B{}; };"), 3),
    fault("another's error", header(KIND, "struct A : std::exception {};", "[] { throw A(); };")),
    fault("a world's", header(KIND, "[] { throw make_error<T>(Odd(1)); };")),
]

ASSERTS = header('invariant(a, "a is "', '          "so");')
FAILS = header('EXPECT_DEATH(f({"b"}), "a is so");')


def asserted(name, tested, *lines):
    """An assertion, and a test of it."""
    table = rooms("shared/a : ferry :", "tests/shared/a : * :")
    files = {**alone({B: ASSERTS}), **table, "tests/shared/a/b_test.cpp": tested}
    return Case(name, files, [f"{B}:{line}" for line in lines])


INVARIANTS = [
    asserted("an assertion that is seen to fail", FAILS),
    asserted("one that is not", header('EXPECT_DEATH(f(), "a");'), 1),
    fault("two with the same words", ASSERTS + ASSERTS, 1, 4),
]


def part(name, line, *lines):
    """A class of which this line is wrong, in a room whose classes are held to be parts."""
    path = "vgpu/runtime/b.h"
    files = {**rooms("vgpu/runtime : ferry::vgpu :"), path: header(*lines, namespace="ferry::vgpu")}
    return Case(name, files, [f"{path}:{line}"])


MANY = [f"  int f{i}(int a) const {{ return a; }}" for i in range(51)]
GOOD = ["class G : B {", "public:", "enum E { k };", "static constexpr A a = A{1} << 2;", "};"]

PARTS = [
    part("a class of many members", 1, "class A {", " public:", *MANY, "};"),
    part("data that all may change", 3, "class A {", "public:", "std::map<int, int> a = {};", "};"),
    part("data after a function", 4, "class A {", "public:", "  void f() {}", "  int a{};", "};"),
    part("data of heirs", 8, *GOOD, "class A final {", " protected:", "  int a_ = f(1);", "};"),
    part("a question", 3, "class A {", "bool is_a(int) const { f(); }", "bool is_b(B b) {}", "};"),
    part("a value with a function", 3, "struct A {", "  int a = 0;", "  int f() const;", "};"),
]

GLOSSARY = """| word | what it means | not |
|---|---|---|
| budget | what a plan fits in | limit |
"""
OPTION = "real/include/ferry/a.h"
OF_PYTHON = "def f(*, budget=1,\n      limit=2):\n  pass\n"


def worded(name, path, text, *lines):
    """An option in a tree with a glossary, in the room of its file; Python's is in none."""
    room = "real/include" if path == OPTION else path.rpartition("/")[0]
    table = alone({}) if path.endswith(".py") else rooms(f"{room} : ferry :")
    return Case(name, {**table, "docs/reference/glossary.md": GLOSSARY, path: text},
                [f"{path}:{line}" for line in lines])


WORDS = [
    worded("an option of the command", "cli/a.h", header("", 'add_option("-l,--a-limit");'), 2),
    worded("one of C++", OPTION, header("TORCH_ARG(std::map<A, B>, limit) = 1;"), 1),
    worded("one of the core", "shared/seam/options.h", header("  int limit_bytes = 1;"), 1),
    worded("one of Python", "python/torch_ferry/a.py", OF_PYTHON, 2),
    worded("another word", "cli/a.h", header('add_flag("--budget");', 'add_flag("--limits");')),
]

def commented(*comments):
    return header(*(line for comment in comments for line in (f"// {comment}", "int x;")))


RIDDLE = "Of equals the one that needs least."
PLAIN = ("By default it is on.", "To find it, read on.", "A sentence.")
SENTENCES = [
    fault("51 comments that are no sentences", commented(*[RIDDLE] * 51), *range(1, 103, 2)),
    Case("50 of them, and sentences", alone({B: commented(*[RIDDLE] * 50, *PLAIN)}), []),
]

UNFORMATTED = fault("formatting", header("int  x;", "int y;"), 1)._replace(formatted=True)

CASES = [*FUNCTIONS, *FILES, *DRAWINGS, *DOCUMENTS, *PAGES, *CITED, *MIRROR, *THROWS, *INVARIANTS,
         *PARTS, *WORDS, *SENTENCES]
