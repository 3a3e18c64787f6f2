"""Every operation of a log has a place in Python: of a training by hand, DDP, FSDP2, a Trainer and
`ferry.offload()`.

    places_test.py FERRY PYTHON PACKAGES [--table]     --table: prints the shares instead
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON, PACKAGES = sys.argv[1:4]
PROGRAM = pathlib.Path(__file__).parent / "programs/places.py"
WAYS = "plain", "ddp", "fsdp", "trainer", "offload"
PLACE = re.compile(r"(?:^| )at (?:the backward of )?(\S+):(\d+) in (\S+)$")


@functools.lru_cache
def operations(way):
    """Of the log: what it is, and its place's file and function, or None."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "run.jsonl"
        done = subprocess.run(
            [FERRY, "run", "--python", PYTHON, "--hide-gpu", "--log", log, PROGRAM, way, PACKAGES],
            capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
        if done.returncode != 0:
            raise AssertionError(f"{way}: {done.stdout}{done.stderr}")
        found = []
        for line in log.read_text().splitlines():
            op = json.loads(line)
            if op.get("op") in (None, "stream", "stream_destroy", "event_destroy"):
                continue
            place = PLACE.search(op.get("name", ""))
            found.append((op, place and (pathlib.Path(place[1]).name, place[3])))
        return found


class Places(unittest.TestCase):
    @staticmethod
    def lines(way, kind):
        return [(op, int(PLACE.search(op["name"])[2])) for op, place in operations(way)
                if op["op"] == kind and place is not None]

    def test_hardly_an_operation_has_none(self):
        for way in WAYS:
            with self.subTest(way):
                found = operations(way)
                without = [op for op, place in found if place is None]
                self.assertGreater(len(found), 50)
                self.assertLessEqual(100 * len(without), len(found), without[:20])

    def test_what_a_hook_of_fsdp_does_in_backward_has_fsdps_line(self):
        hooks = [place for op, place in operations("fsdp")
                 if place and place[0].startswith("_fsdp_")]
        self.assertTrue(any("backward" in function or "reduce" in function
                            for _, function in hooks), hooks)

    def test_a_method_has_the_name_of_its_class(self):
        functions = {place[1] for _, place in operations("plain") if place}
        named = subprocess.run([PYTHON, "-c", "(lambda: 0).__code__.co_qualname"],
                               capture_output=True)  # Python 3.11 and later
        self.assertIn("Model.forward" if named.returncode == 0 else "forward", functions)
        self.assertIn("train", functions)

    def test_a_gradients_sum_and_a_wait_have_their_lines(self):
        # By hand all is in the program: nothing has a line of PyTorch's.
        lines = PROGRAM.read_text().splitlines()
        for op, place in operations("plain"):
            if place is not None:
                self.assertEqual(place[0], "places.py", op)
        waits = {lines[line - 1].strip() for op, line in self.lines("plain", "stream_sync")}
        self.assertLessEqual({"torch.cuda.synchronize()"}, waits)
        # A gradient's sum: the operator of forward that the parameter went into.
        sums = {lines[line - 1].strip() for op, line in self.lines("plain", "kernel")
                if op["name"].startswith("aten::add_")}
        self.assertEqual(sums, {"x = functional.gelu(block(x))"})


def table():
    for way in WAYS:
        found = operations(way)
        without = sum(place is None for _, place in found)
        print(f"{way:10} {len(found):6} operations, without a place {without}"
              f" ({100 * without / len(found):.2f} %)")
        kinds = {}
        for op, place in found:
            if place is None:
                key = op["op"], op.get("name", "")
                kinds[key] = kinds.get(key, 0) + 1
        for key, count in sorted(kinds.items(), key=lambda item: -item[1])[:12]:
            print("          ", count, *key)


if __name__ == "__main__":
    if sys.argv[4:] == ["--table"]:
        table()
    else:
        unittest.main(argv=sys.argv[:1])
