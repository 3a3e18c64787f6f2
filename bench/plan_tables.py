"""The tables of bench/results about `best`: how far its plans are from the lower bound.

    python bench/plan_tables.py PROGRAM grid [--allocated] [--programs gpt2] [--cards h100]
                                                              shipped programs on three cards
    python bench/plan_tables.py PROGRAM grid --trainings ...  the same, of whole trainings
    python bench/plan_tables.py PROGRAM dtr LOGS              DTR's logs beside DTR's own results
    python bench/plan_tables.py PROGRAM parts                 with a part of the decisions left out
    python bench/plan_tables.py PROGRAM pareto [--trainings]  the curve beside its budgets, planned
                                                              one by one

PROGRAM is `ferry`, LOGS the folder of DTR's published logs. Seconds are those of the processor, all
threads together. Exit code 2: a run failed.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("unet", "gpt2", "llama3-8b")
CARDS = ("h100", "rtx4090", "a100")
TENTHS = (9, 8, 7, 6, 5)
# Step over that without recomputes, by DTR's simulator with its best heuristic; it counts
# allocated bytes, as shares of the peak in bytes.
DTR = {"resnet32-56": (10_061_179_152, {9: 1.013, 8: 1.025, 7: 1.046, 6: 1.074, 5: 1.107,
                                        4: 1.140, 3: 1.179, 2: 1.332}),
       "transformer-10": (9_864_405_000, {9: 1.009, 8: 1.020, 7: 1.031, 6: 1.044, 5: 1.058,
                                          4: 1.091, 3: 1.124, 2: 1.545}),
       "unet-6": (8_415_764_640, {9: 1.033, 8: 1.058, 7: 1.085, 6: 1.149, 5: 1.159, 4: None})}
PARTS = {"all": (), "without modules": ("--no-modules",), "without spans": ("--no-spans",),
         "without offload": ("no host",), "recompute alone, spans": ("no host", "--no-modules")}

# The decisions are of forward and backward: no optimizer, whose time would be in every figure.
ONE_STEP = ("--optimizer", "none", "--steps", "1")
TRAINING = ()  # what is planned unless told otherwise: the third step, with AdamW


def plan(ferry, program, card, policies, *options, of=ONE_STEP):
    """The rows of a plan, and the seconds that it took."""
    return printed(ferry, program, card, "--policy", policies, *options, of=of)


def printed(ferry, program, card, *options, of=ONE_STEP):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([ferry, "plan", program, "--card", card, *of, "--json", *options],
                          capture_output=True, text=True, check=False)
    if not done.stdout:
        print(done.stderr, file=sys.stderr)
        sys.exit(2)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return json.loads(done.stdout), seconds


def memory_of(row, allocated):
    return row["device_peak_bytes" if allocated else "device_reserved_bytes"]


def ratio(row, keep):
    return f"{row['step_ns'] / keep['step_ns']:.3f}" if row["fits"] else "none"


def gap(row, bound):
    return f"{(row['step_ns'] / bound - 1) * 100:.1f} %" if row["fits"] and bound else ""


def grid(ferry, allocated, programs, cards, of):
    """`best-expandable` is empty where `best` is near the bound, or it is not faster."""
    judged = ["--allocated"] if allocated else []
    print("| program, card | budget | mixed | best | best-expandable | no plan is below "
          "| gap | gap, expandable | s |")
    print("|---" * 9 + "|")
    for program in programs:
        for card in cards:
            keep = plan(ferry, program, card, "keep", *judged, of=of)[0]["rows"][0]
            for tenths in TENTHS:
                budget = str(memory_of(keep, allocated) * tenths // 10)
                mixed = plan(ferry, program, card, "mixed", "--budget", budget, *judged, of=of)[0]
                found, seconds = plan(ferry, program, card, "best", "--budget", budget, *judged,
                                      of=of)
                row, bound = found["rows"][0], found["lower_bound_ns"]
                other = found["rows"][1] if len(found["rows"]) > 1 else None
                below = f"{bound / keep['step_ns']:.3f}" if bound else "none"
                print(f"| {program}, {card} | 0.{tenths} | {ratio(mixed['rows'][0], keep)} "
                      f"| {ratio(row, keep)} | {ratio(other, keep) if other else ''} | {below} "
                      f"| {gap(row, bound)} | {gap(other, bound) if other else ''} "
                      f"| {seconds:.1f} |", flush=True)


def dtr(ferry, logs):
    sys.path.insert(0, str(HERE.parent / "python"))
    from torch_ferry import dtr as reader, dtr_log  # pylint: disable=import-outside-toplevel
    print("| log | budget | DTR | best | no plan is below | s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (peak, curve) in DTR.items():
            path = pathlib.Path(folder) / f"{name}.jsonl"
            reader.program_of(dtr_log.read(logs / f"{name}.log"), name).write(path)
            keep = plan(ferry, str(path), "titan-v", "keep", "--allocated")[0]["rows"][0]
            share = keep["device_peak_bytes"] / peak
            print(f"<!-- {name}: keep's peak is {share:.4f} of the log's -->")
            for tenths, published in curve.items():
                found, seconds = plan(ferry, str(path), "titan-v", "best", "--allocated",
                                      "--budget", str(peak * tenths // 10))
                row = found["rows"][0]
                print(f"| {name} | 0.{tenths} | {published or 'does not fit'} | {ratio(row, keep)} "
                      f"| {found['lower_bound_ns'] / keep['step_ns']:.3f} | {seconds:.1f} |",
                      flush=True)


def parts(ferry):
    print("| program, card | budget | " + " | ".join(PARTS) + " |")
    print("|---" * (len(PARTS) + 2) + "|")
    cards = {card: card for card in CARDS}
    with tempfile.TemporaryDirectory() as folder:
        for card in CARDS:
            text = (HERE.parent / "scenarios/hardware" / f"{card}.toml").read_text(encoding="utf-8")
            lines = ['host_memory = "0GiB"' if line.startswith("host_memory") else line
                     for line in text.split("\n")]
            cards[card] = pathlib.Path(folder) / f"{card}.toml"
            cards[card].write_text("\n".join(lines), encoding="utf-8")
        for program, card in (("unet", "h100"), ("gpt2", "rtx4090"), ("llama3-8b", "h100")):
            keep = plan(ferry, program, card, "keep")[0]["rows"][0]
            for tenths in (8, 7, 6):
                budget = str(keep["device_reserved_bytes"] * tenths // 10)
                cells = []
                for options in PARTS.values():
                    on = str(cards[card]) if "no host" in options else card
                    rest = [each for each in options if each != "no host"]
                    found, _ = plan(ferry, program, on, "best", "--budget", budget,
                                    "--no-expandable", *rest)
                    cells.append(ratio(found["rows"][0], keep))
                print(f"| {program}, {card} | 0.{tenths} | " + " | ".join(cells) + " |", flush=True)


def pareto(ferry, of):
    """The price of a curve: its seconds, over the mean of its budgets for the same allocator."""
    print("| program, card | all, s | one, s | times | longer, mean | most | least budget |")
    print("|---" * 7 + "|")
    for program in PROGRAMS:
        curve, seconds = printed(ferry, program, "h100", "--pareto", of=of)
        one, longer = 0, []
        for row in curve["rows"]:
            found, took = plan(ferry, program, "h100", "best", "--no-expandable", "--budget",
                               str(row["budget_bytes"]), of=of)
            one += took / len(curve["rows"])
            if found["rows"][0]["fits"]:
                longer.append(row["step_ns"] / found["rows"][0]["step_ns"])
        print(f"| {program}, h100 | {seconds:.1f} | {one:.2f} | {seconds / one:.1f} "
              f"| {sum(longer) / len(longer):.3f} | {max(longer):.3f} "
              f"| {curve['floor_bytes'] / 2**30:.3f} GiB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("ferry")
    tables = parser.add_subparsers(dest="table", required=True)
    of_grid = tables.add_parser("grid")
    of_grid.add_argument("--allocated", action="store_true")
    of_grid.add_argument("--programs", nargs="*", default=PROGRAMS)
    of_grid.add_argument("--cards", nargs="*", default=CARDS)
    tables.add_parser("dtr").add_argument("logs", type=pathlib.Path)
    tables.add_parser("parts")
    of_pareto = tables.add_parser("pareto")
    for each in (of_grid, of_pareto):
        each.add_argument("--trainings", action="store_const", const=TRAINING, default=ONE_STEP)
    arguments = parser.parse_args()
    if arguments.table == "grid":
        grid(arguments.ferry, arguments.allocated, arguments.programs, arguments.cards,
             arguments.trainings)
    elif arguments.table == "dtr":
        dtr(arguments.ferry, arguments.logs)
    elif arguments.table == "pareto":
        pareto(arguments.ferry, arguments.trainings)
    else:
        parts(arguments.ferry)


if __name__ == "__main__":
    main()
