"""Holds ratios of benchmarks to recorded ones: two of one run, so that the machine hardly counts.

    python check.py build/release/bench bench/recorded.json

Each ratio is of the least times of several repetitions. One that is more than 1.5 times what was
recorded fails; `--record` writes down what is measured instead. Exit code 1: a ratio has grown; 2:
a file cannot be read; 7: a program is not there.
"""

import argparse
import json
import pathlib
import subprocess
import sys

GROWN = 1.5


def measured(program, names, counter, repetitions):
    """The least value of each benchmark's counter."""
    pattern = "^(" + "|".join(names) + ")(/|$)"
    done = subprocess.run(
        [program, f"--benchmark_filter={pattern}", f"--benchmark_repetitions={repetitions}",
         "--benchmark_enable_random_interleaving=true", "--benchmark_format=json"],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program}: exit {done.returncode}\n{done.stderr}")
    least = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        value = run[counter]
        least[run["run_name"]] = min(value, least.get(run["run_name"], value))
    return least


def value_of(least, name):
    found = [value for run, value in least.items() if run == name or run.startswith(name + "/real")]
    if len(found) != 1:
        raise RuntimeError(f"{name}: {len(found)} benchmarks of that name")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("programs", help="the folder of the benchmarks")
    parser.add_argument("recorded", help="the file of ratios")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--record", action="store_true", help="write what is measured")
    arguments = parser.parse_args()
    try:
        ratios = json.loads(pathlib.Path(arguments.recorded).read_text(encoding="utf-8"))
        pairs = [(each["program"], each["counter"], each["slow"], each["fast"], each["ratio"])
                 for each in ratios["ratios"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"check.py: {arguments.recorded}: {error!r}", file=sys.stderr)
        return 2
    grown = 0
    print(f"{'ratio of':44} {'recorded':>9} {'measured':>9}")
    for each, (program, counter, slow, fast, recorded) in zip(ratios["ratios"], pairs):
        file = pathlib.Path(arguments.programs) / program
        if not file.exists():
            print(f"check.py: {file} is not there", file=sys.stderr)
            return 7
        least = measured(file, [slow, fast], counter, arguments.repetitions)
        ratio = value_of(least, slow) / value_of(least, fast)
        failed = ratio > GROWN * recorded
        grown += failed
        each["ratio"] = round(ratio, 2)
        print(f"{slow + ' : ' + fast:44} {recorded:9.2f} {ratio:9.2f}{'  grown' * failed}",
              flush=True)
    if arguments.record:
        text = ",\n".join("    " + json.dumps(each) for each in ratios["ratios"])
        pathlib.Path(arguments.recorded).write_text(
            '{\n  "schema": 1,\n  "ratios": [\n' + text + "\n  ]\n}\n", encoding="utf-8")
        return 0
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
