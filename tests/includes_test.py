"""The arrows of the house go one way: fails when an #include breaks the direction.

    shared    -> nothing of ours, and the standard library only
    formats   -> shared
    scenarios -> formats, shared
    sim, real -> scenarios, formats, shared     (they never see each other)
    cli       -> all but real

Includes of ours are written from the root ("formats/error.h"); what users include is "ferry/*.h",
and belongs to real. Before the tree is judged, a bad
sample tree is: a checker that finds nothing there fails too.
"""

import pathlib
import re
import sys
import tempfile

MAY_SEE = {
    "shared": set(),
    "formats": {"shared"},
    "scenarios": {"formats", "shared"},
    "sim": {"scenarios", "formats", "shared"},
    "real": {"scenarios", "formats", "shared"},
    "cli": {"sim", "scenarios", "formats", "shared"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>; <x.h> and <lib/x> are not the standard library's
SUFFIXES = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".inl"}


def breaks(folder, quote, target):
    """Why this include in this folder is wrong, or None."""
    first = target.split("/")[0]
    if first == "ferry":  # real/include/ferry: what users include
        first = "real"
    if quote == '"' and (".." in target.split("/") or first not in MAY_SEE):
        return "an include of ours is written from the root"
    if first in MAY_SEE and "/" in target:
        if first != folder and first not in MAY_SEE[folder]:
            return f"{folder} may not see {first}"
    elif folder == "shared" and not STANDARD.match(target):
        return "shared uses the standard library only"
    return None


def violations(root):
    found = []
    for folder in sorted(MAY_SEE):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                why = match and breaks(folder, match[1], match[2])
                if why:
                    found.append(f"{path.relative_to(root)}:{number}: {line.strip()}: {why}")
    return found


BAD = {  # file: its lines, each of them wrong
    "shared/a.h": ['#include "formats/b.h"', "#include <fmt/core.h>", "#include <unistd.h>"],
    "formats/b.h": ['#include "scenarios/c.h"', '  #  include "sim/d.h"'],
    "scenarios/c.h": ['#include "sim/d.h"', '#include "c.h"'],
    "sim/deep/d.h": ['#include "real/e.h"', '#include "../d.h"', "#include <real/e.h>"],
    "real/e.cu": ['#include "sim/d.h"', '#include "cli/f.h"'],
    "cli/f.cpp": ['#include "real/e.h"', '#include "ferry/e.h"', "#include <ferry/e.h>"],
}
GOOD = {
    "shared/ok.h": ["#include <vector>", '#include "shared/a.h"', '// #include "sim/d.h"'],
    "real/ok.cpp": ['#include "ferry/e.h"', "#include <torch/torch.h>"],
    "sim/ok.cpp": ["#include <sys/mman.h>", '#include "shared/a.h"', '#include "scenarios/c.h"'],
    "cli/ok.cpp": ['#include "sim/deep/d.h"', "#include <CLI/CLI.hpp>"],
}


def self_test():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for path, lines in {**BAD, **GOOD}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = {line.split(": ")[0] for line in violations(root)}
    expected = {f"{path}:{n}" for path, lines in BAD.items() for n in range(1, len(lines) + 1)}
    return [f"self-test: missed {where}" for where in sorted(expected - found)] + [
        f"self-test: false alarm {where}" for where in sorted(found - expected)
    ]


def main():
    problems = self_test() or violations(pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(problems) if problems else "includes: every arrow goes one way")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
