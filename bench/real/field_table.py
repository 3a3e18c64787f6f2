"""The field's rows as a table, and whether their losses agree."""

MIB = 1 << 20
REASON = 100  # characters of why a row has no more steps
# What it brings back is contiguous, whatever it was, and other kernels may take that.
RESTRIDES = {"save_on_cpu"}


def losses(row):
    return [step["loss"] for step in row["steps"]]


def apart(row, other):
    """The largest relative difference of a loss, of the steps that both have."""
    return max((abs(a - b) / max(abs(b), 1e-30) for a, b in zip(losses(row), losses(other))),
               default=0.0)


def verdict(row, keep, tolerance):
    """What is said of the row's losses, and whether that is well. No tolerance: the same bits."""
    ours, theirs = losses(row), losses(keep)
    several = min(len(ours), len(theirs))
    if ours[:several] == theirs[:several]:
        return "the same bits", True
    far = apart(row, keep)
    if tolerance is None:
        first = next(i for i in range(several) if ours[i] != theirs[i])
        return f"other bits from step {first + 1}, {far:.1e} apart", False
    return f"{far:.1e} apart, within {tolerance:g}" if far <= tolerance else \
        f"{far:.1e} apart, over {tolerance:g}", far <= tolerance


def family_of(name):
    return "Ferry" if name.startswith("ferry-") else "Python"


def silent(rows):
    """The families of which rows were asked for and none made a step: nothing was compared."""
    families = {family_of(name) for name in rows}
    return sorted(families - {family_of(name) for name, row in rows.items() if row["steps"]})


def verdicts(rows, tolerance):
    """Gives each row its `losses`; whether all agree. Every family has the first of its rows that
    ran as its measure, which is its keep where that ran; the families' measures are compared."""
    measures, agree = {}, True
    for name, row in rows.items():
        family = family_of(name)
        if not row["steps"]:
            row["losses"] = ""
            continue
        if family in measures:
            allowed = tolerance if name in RESTRIDES else None
            row["losses"], well = verdict(row, measures[family], allowed)
        else:
            others = list(measures.values())
            measures[family] = row
            said, well = verdict(row, others[0], tolerance) if others else ("the measure", True)
            row["losses"] = f"of Python's: {said}" if others else said
        agree = agree and well
    return agree


def milliseconds(seconds):
    return "" if seconds is None else f"{seconds * 1e3:.1f}"


def mebibytes(count):
    return "" if count is None else f"{count / MIB:.1f}"


def shortened(why):
    """The whole of it is in the JSON file."""
    return why if len(why) <= REASON else why[:REASON] + " ..."


def table(rows, cuda):
    """One line a row. The peak is the allocator's on CUDA, and the process's resident size on a
    CPU."""
    heads = ["row", "step ms", "least", "forward, backward", "optimizer",
             "allocated MiB" if cuda else "resident MiB", "reserved MiB", "moved MiB a step",
             "last loss", "losses"]
    lines = [heads]
    for name, row in rows.items():
        if row["steps"]:
            figures = [milliseconds(row["seconds_median"]), milliseconds(row["seconds_least"]),
                       milliseconds(row["forward_backward_median"]),
                       milliseconds(row["optimizer_median"]),
                       mebibytes(row["peak_bytes" if cuda else "rss_bytes"]),
                       mebibytes(row["reserved_bytes"]) if cuda else "",
                       mebibytes(row.get("moved_bytes")), f"{losses(row)[-1]:.6f}", row["losses"]]
        else:
            figures = [""] * 8 + ["no step"]
        parts = (figures[-1], shortened(row["why_not"]), row["note"])
        figures[-1] = "; ".join(part for part in parts if part)
        lines.append([name, *figures])
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    aligned = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [line[i].rjust(widths[i]) for i in range(1, len(heads) - 1)]
        aligned.append("  ".join([*cells, line[-1]]))
    return "\n".join(aligned)
