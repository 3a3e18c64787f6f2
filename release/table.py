"""Writes the results of fresh.py into the page, with a row for each pair of Python and torch.

    table.py FRESH.JSON … [--page docs/reference/versions.md]

It replaces the whole table between two marks in the page, so give it the results of all pairs.
"""

import argparse
import json
import pathlib

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/reference/versions.md"
BEGIN, END = "<!-- pairs: release/table.py -->\n", "<!-- end of pairs -->\n"
HEAD = ("| Python | torch | installed in | first table in | `import torch_ferry` adds | all steps |\n"
        "|---|---|---|---|---|---|\n")


def line(row):
    if "failed" in row:
        why = row["failed"].splitlines()[0]
        return f"| {row['python']} | {row['torch']} | | | | fails: {why} |\n"
    adds = f"{row['import ms']:.0f} ms" if "import ms" in row else "no torch"
    return (f"| {row['python']} | {row['torch']} | {row['install s']:.1f} s | {row['plan s']:.1f} s "
            f"| {adds} | hold |\n")


def order(row):
    return [[int(part) if part.isdigit() else 0 for part in row[name].split(".")]
            for name in ("python", "torch")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=pathlib.Path, nargs="+")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    options = parser.parse_args()
    rows = [row for file in options.measured for row in json.loads(file.read_text("utf-8"))]
    before, _, rest = options.page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = HEAD + "".join(line(row) for row in sorted(rows, key=order))
    options.page.write_text(before + BEGIN + table + END + after, "utf-8")


if __name__ == "__main__":
    main()
