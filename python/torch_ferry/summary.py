"""Prints a program's operators, saved bytes and FLOPs, without running it.

    python -m torch_ferry.summary FILE [--depth N]

Saved bytes count each storage once and whole, even if several windows on it are saved. Storages of
parameters are not counted. A storage belongs to the module that saved it first. The FLOPs of
backward are those of the bodies, once for each node.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field

from .check import check
from .program import ProgramError, end_bytes, load


@dataclass
class Saved:
    """A saved storage: the operator (or global) that made it, and the module that saved it first.
    """

    source: str
    module: str
    bytes: int
    fields: dict
    parameter: bool
    times: int = 0


@dataclass
class Summary:
    ops_forward: int = 0
    ops_backward: int = 0
    nodes: int = 0
    saved_tensors: int = 0
    flops_forward: int = 0
    flops_backward: int = 0
    storages: list = field(default_factory=list)  # Saved objects, in the order of saving

    @property
    def activations(self):
        return [each for each in self.storages if not each.parameter]

    @property
    def saved_bytes(self):
        return sum(each.bytes for each in self.activations)

    def by_module(self, depth):
        """Returns {first `depth` parts of the module's path: (storages, bytes)}, in order."""
        table = {}
        for each in self.activations:
            path = ".".join(each.module.split(".")[:depth]) or "(outside)"
            storages, size = table.get(path, (0, 0))
            table[path] = (storages + 1, size + each.bytes)
        return table


def summarize(program):
    """Returns the Summary of a program. A body counts once for each of its nodes."""
    summary = Summary()
    for code in program.codes:
        if code.kind != "body":
            _walk(program, code, summary)
    return summary


def _walk(program, code, summary):
    sources, owner, modules, found = {}, {}, [], {}
    for line in program.globals:
        slot = line["global"]
        sources[slot] = (line["name"], end_bytes(line), line, line["kind"] == "parameter")
        owner[slot] = owner[line["alias"]] if "alias" in line else slot

    def save(slots):
        summary.saved_tensors += len(slots)
        for slot in slots:
            base = owner[slot]
            if base not in found:
                name, size, fields, parameter = sources[base]
                module = modules[-1] if modules else ""
                found[base] = Saved(name, module, size, fields, parameter)
                summary.storages.append(found[base])
            found[base].times += 1

    for line in code.statements:
        if "op" in line:
            summary.ops_forward += 1
            summary.flops_forward += line.get("flops", 0)
            for output in line["out"]:
                owner[output["slot"]] = output["slot"]
                sources[output["slot"]] = (line["op"], end_bytes(output), output, False)
        elif "view" in line:
            owner[line["view"]] = owner[line["of"]]
        elif "node" in line:
            summary.nodes += 1
            save(line.get("saved", []))
            ops = [each for each in program.codes[line["body"]].statements if "op" in each]
            summary.ops_backward += len(ops)
            summary.flops_backward += sum(each.get("flops", 0) for each in ops)
        elif "save" in line:
            save(line["slots"])
        elif "enter" in line:
            modules.append(line["enter"])
        elif "leave" in line:
            modules.pop()
        elif "call" in line:
            for slot in line["out"]:
                owner[slot] = slot
                sources[slot] = ("call", 0, line, False)


def merge_layers(table):
    """Merges neighbouring rows that are equal except for a number in their path."""
    rows = []
    for path, (storages, size) in table.items():
        general = re.sub(r"\d+", "*", path)
        if rows and rows[-1][:3] == [general, storages, size] and general != path:
            rows[-1][3] += 1
        else:
            rows.append([general, storages, size, 1, path])
    return [(general if times > 1 else path, storages, size, times)
            for general, storages, size, times, path in rows]


def mebibytes(size):
    return f"{size / 2**20:,.2f} MiB" if size < 2**30 else f"{size / 2**30:,.3f} GiB"


def report(program, depth):
    summary = summarize(program)
    yield f"program          {program.name}"
    for key, value in program.about.items():
        yield f"  {key:<14} {value}"
    yield f"ops              {summary.ops_forward} forward, {summary.ops_backward} backward"
    yield f"nodes            {summary.nodes}"
    yield f"saved tensors    {summary.saved_tensors}"
    yield (f"saved storages   {len(summary.activations)} besides parameters, "
           f"{mebibytes(summary.saved_bytes)}")
    yield (f"FLOPs            {summary.flops_forward:.4e} forward, "
           f"{summary.flops_backward:.4e} backward")
    yield "saved bytes by module (each, and how often):"
    for path, storages, size, times in merge_layers(summary.by_module(depth)):
        yield f"  {path:<32} {storages:>4} storages  {mebibytes(size):>14}  x {times}"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m torch_ferry.summary",
                                     description="What a program saves and costs.")
    parser.add_argument("path", metavar="FILE")
    parser.add_argument("--depth", type=int, default=3,
                        help="how many parts of a module's path to show; default 3")
    options = parser.parse_args(arguments)
    try:
        program = check(load(options.path))
    except (ProgramError, KeyError, TypeError) as error:
        print(f"torch_ferry.summary: {options.path}: {error}", file=sys.stderr)
        return 2
    print("\n".join(report(program, options.depth)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
