"""The rows of a Google Benchmark program."""

import json
import subprocess


def best_rows(program, counter):
    """The least that each row's counter was in five repetitions."""
    out = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_repetitions=5"],
        check=True, capture_output=True, text=True).stdout
    best = {}
    for row in json.loads(out)["benchmarks"]:
        if row["run_type"] == "iteration":
            best[row["run_name"]] = min(row[counter], best.get(row["run_name"], row[counter]))
    return best
