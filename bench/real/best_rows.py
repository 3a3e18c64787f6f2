"""The rows of a Google Benchmark program."""

import json
import statistics
import subprocess


def _rows(program, counter):
    """What each row's counter was in five repetitions."""
    out = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_repetitions=5",
         "--benchmark_enable_random_interleaving"],
        check=True, capture_output=True, text=True).stdout
    rows = {}
    for row in json.loads(out)["benchmarks"]:
        if row["run_type"] == "iteration":
            rows.setdefault(row["run_name"], []).append(row[counter])
    return rows


def best_rows(program, counter):
    """The least of each: of times, which a busy machine makes longer."""
    return {name: min(values) for name, values in _rows(program, counter).items()}


def middle_rows(program, counter):
    """The median of each: of differences."""
    return {name: statistics.median(values) for name, values in _rows(program, counter).items()}
