"""`ferry plan` beside a table of whole trainings' memory: the shipped programs' rows.

The table (FERRY_MEMORY_TABLE) was made by PyTorch 2.11's own allocator, dispatcher and host code
over a CUDA runtime whose launches did nothing.
"""

import csv
import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(os.environ.get(
    "FERRY_MEMORY_TABLE", ROOT.parent / "shared/data/training-memory/shared.csv"))
FERRY = os.environ.get("FERRY_PROGRAM", "")
CARDS = {"90": "h200", "80": "a100"}
POLICIES = {"off": "keep", "noreentrant": "checkpoint"}
OPTIMIZERS = {"none": ["none"], "adamw": ["adamw"], "sgd": ["momentum"],
              "fused": ["adamw", "--optimizer-implementation", "fused"]}

# GPT-2 kept and recomputed, accumulated, on two cards; Llama-3-8B kept and recomputed.
ROWS = ("S01", "S02", "S03", "S04", "S08", "S10", "S15", "S17", "S18", "S19", "S20", "S21")


def planned(row, steps):
    command = [FERRY, "plan", row["model"], "--hardware", CARDS[row["sm"]], "--policy",
               POLICIES[row["ckpt"]], "--microbatches", row["accum"], "--steps", str(steps),
               "--unchecked", "--json", "--optimizer", *OPTIMIZERS[row["opt"]]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["rows"][0]


@unittest.skipUnless(os.path.exists(FERRY), "no FERRY_PROGRAM: the program was not built")
@unittest.skipUnless(TABLE.exists(), "no data: there is no table of trainings' memory")
class MemoryTableTest(unittest.TestCase):
    def setUp(self):
        with TABLE.open() as lines:
            self.rows = {row["id"]: row for row in csv.DictReader(lines)}

    def near(self, seen, expected, share, what):
        self.assertLessEqual(abs(seen / int(expected) - 1), share, f"{what}: {seen}, {expected}")

    def test_each_step_is_that_of_the_table(self):
        for name in ROWS:
            for step in (1, 2, 3):
                with self.subTest(row=name, step=step):
                    row, seen = self.rows[name], planned(self.rows[name], step)
                    self.near(seen["device_peak_bytes"], row[f"peak_{step}"], 0.001, "allocated")
                    self.near(seen["device_reserved_bytes"], row[f"reserved_{step}"], 0.01,
                              "reserved")

    def test_it_runs_in_what_pytorch_ran_in(self):
        for name in ROWS:
            with self.subTest(row=name):
                row, seen = self.rows[name], planned(self.rows[name], 3)
                self.near(seen["least_bytes"], row["mincap_default"], 0.01, "least capacity")


if __name__ == "__main__":
    unittest.main()
