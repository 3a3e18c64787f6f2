"""Bad trees: includes, the table of rooms, namespaces."""

from bad_case import B, Case, alone, bad_table, fault, header, include, rooms


def loosened(room, seen):
    """A table that lets a room see what its folder never may: a wrong line, and a wrong include."""
    files = {f"{room}/b.h": include(f"{seen}/a.h"), f"{seen}/a.h": header()}
    table = rooms(f"{seen} : * :", f"{room} : * : {seen}")
    return Case(f"{room} sees {seen}", {**table, **files}, ["cmake/rooms.txt:2", f"{room}/b.h:1"])


INCLUDES = [
    Case(
        "an arrow that is not in the table",
        {
            **rooms("shared/a : ferry :", "shared/b : ferry :"),
            "shared/a/a.h": header(),
            "shared/b/b.h": header("#include <vector>", '  #  include "shared/a/a.h"'),
        },
        ["shared/b/b.h:2"],
    ),
    Case(
        "real/include is a room as others are",
        {
            **rooms("real/include : ferry :", "real/a : * :"),
            "real/include/ferry/a.h": header(),
            "real/a/b.h": header("#include <ferry/a.h>"),
        },
        ["real/a/b.h:1"],
    ),
    Case(
        "so is verify/include",
        {
            **rooms("verify/include : ferry :", "sim/a : * :"),
            "verify/include/ferry/a.h": header(),
            "sim/a/b.h": header("#include <ferry/a.h>"),
        },
        ["sim/a/b.h:1"],
    ),
    Case(
        "what users include, by its folder",
        {
            **rooms("real/include : ferry :"),
            "real/include/ferry/a.h": header(),
            "real/include/ferry/b.h": include("real/include/ferry/a.h"),
        },
        ["real/include/ferry/b.h:1"],
    ),
    Case(
        "angles",
        {**rooms("formats : ferry :"), "formats/a.h": header("#include <formats/a.h>")},
        ["formats/a.h:1"],
    ),
    Case(
        "choices with more than the standard library",
        {**rooms("sim/choices : ferry :"), "sim/choices/a.h": header("#include <fmt/core.h>")},
        ["sim/choices/a.h:1"],
    ),
    fault("a way up", include("shared/a/../a/a.h"), 1),
    fault("a bare name", include("a.h"), 1),
    fault("no such file", include("shared/a/c.h"), 1),
    fault("no such folder", include("other/c.h"), 1),
    fault("other libraries", header("#include <vector>", "#include <x.h>", "#include <l/x>"), 2, 3),
    fault("in the other branch", header("#if 0", "#else", "#include <x.h>", "#endif"), 3),
    loosened("shared/a", "formats"),
    loosened("formats", "sim/a"),
    loosened("scenarios", "tests/a"),
    loosened("sim/a", "real/a"),
    loosened("sim/a", "bench"),
    loosened("real/a", "sim/a"),
    loosened("cli", "real/a"),
    loosened("cli", "verify/a"),
    loosened("sim/a", "plan"),
    loosened("plan", "verify/a"),
    loosened("verify/a", "plan"),
    loosened("tests/shared/a", "plan"),
    loosened("tests/shared/a", "tests/verify/support"),
    loosened("tests/sim/support", "verify/a"),
]

# An include in a comment and one in a string make no arrow.
QUOTED = header('// #include "shared/a/a.h"', 'auto s = R"(', '#include "shared/a/a.h"', ')";')

TABLES = [
    Case("no table", {"README.md": "None.\n"}, ["cmake/rooms.txt:1"]),
    bad_table("a line that says nothing", 3, "# Rooms.", "shared/a : ferry :", "what"),
    bad_table("a room twice", 2, "shared/a : ferry :", "shared/a : ferry :"),
    bad_table("a room without files", 2, "shared/a : ferry :", "shared/b : ferry :"),
    bad_table("sees what is no room", 1, "shared/a : ferry : shared/c"),
    Case(
        "a room that moved",
        {**rooms("sim/plan : ferry::plan :"), "sim/plan/a.h": "namespace ferry::plan {}\n"},
        ["cmake/rooms.txt:1"],
    ),
    bad_table("sees itself", 1, "shared/a : ferry : shared/a"),
    fault("a folder that is no room", header(), 1, path="shared/b/b.h"),
    Case(
        "an arrow that nothing uses",
        {
            **rooms("shared/a : ferry :", "shared/b : ferry : shared/a"),
            "shared/a/a.h": header(),
            "shared/b/b.h": QUOTED,
        },
        ["cmake/rooms.txt:2"],
    ),
    Case(
        "a circle of three",
        {
            **rooms(
                "shared/c : ferry : shared/b",
                "shared/b : ferry : shared/a",
                "shared/a : ferry : shared/c",
            ),
            "shared/a/a.h": include("shared/c/c.h"),
            "shared/b/b.h": include("shared/a/a.h"),
            "shared/c/c.h": include("shared/b/b.h"),
        },
        ["cmake/rooms.txt:3"],
    ),
]

STRUCT = header("namespace ferry {", "struct A {};", "}")

NAMESPACES = [
    fault("another namespace", header("", namespace="other"), 2),
    fault("a name that begins alike", header(namespace="ferryman"), 1),
    fault("no namespace", "int f();\nnamespace std {}\n", 1),
    Case(
        "the outer namespace",
        {**rooms("sim/a : ferry::sim :"), "sim/a/a.h": header()},
        ["sim/a/a.h:1"],
    ),
    Case(
        "an instance beside a type of its own, in the template's namespace",
        {
            **rooms("sim/a : ferry::sim :"),
            "sim/a/a.h": "namespace ferry {\nstruct A {};\ntemplate class B<A>;\n}\n",
        },
        ["sim/a/a.h:1"],
    ),
    Case(
        "a header of real that opens what users include",
        {
            **rooms("real/include : ferry :", "real/a : ferry::real : real/include"),
            "real/include/ferry/a.h": header(),
            "real/a/b.h": include("ferry/a.h"),
        },
        ["real/a/b.h:2"],
    ),
    Case("a type twice", alone({B: STRUCT, "shared/a/c.h": STRUCT}), ["shared/a/c.h:2"]),
    Case(
        "a type twice in a namespace, an enum and a template of two rooms",
        {
            **rooms("formats : ferry :", "scenarios : ferry :"),
            "formats/a.h": "namespace ferry {\nnamespace x {\nenum class A : int { kA };\n}\n}\n",
            "scenarios/b.h": "namespace ferry::x {\ntemplate <class T>\nclass A : B<T> {};\n}\n",
        },
        ["scenarios/b.h:2"],
    ),
]

CROWDED = Case(
    "a name of a type in five rooms",
    {
        **rooms(*(f"shared/{room} : ferry :" for room in "abcde")),
        **{f"shared/{room}/a.h": header("namespace ferry {", f"struct Of{room} {{",
                                        "  struct Block {};", "};", "}")
           for room in "abcde"},
    },
    ["shared/e/a.h:3"],
)


CASES = [*INCLUDES, *TABLES, *NAMESPACES, CROWDED]
