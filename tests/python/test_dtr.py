"""DTR's operator logs: read, refused, and as programs. Needs no torch.

FERRY_PROGRAM names the command, FERRY_DTR_LOGS the folder of the published logs (by default one
beside this tree); what needs either is skipped without.
"""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from torch_ferry import dtr, dtr_log  # noqa: E402
from torch_ferry.check import check  # noqa: E402

PROGRAM = os.environ.get("FERRY_PROGRAM", "")
LOGS = pathlib.Path(os.environ.get("FERRY_DTR_LOGS", ROOT.parent / "shared/data/dtr"))
NO_LOGS = "no data: FERRY_DTR_LOGS names no folder of published logs"
# How long a step takes over one without recomputes, by budget in tenths of the peak: DTR's own
# simulator with its best heuristic (reproduced from its logs; it counts allocated bytes).
CURVES = {"resnet32-56": {9: 1.013, 8: 1.025, 7: 1.046, 6: 1.074, 5: 1.107, 4: 1.140, 3: 1.179,
                          2: 1.332},
          "transformer-10": {9: 1.009, 7: 1.031, 5: 1.058, 3: 1.124, 2: 1.545},
          "unet-6": {9: 1.033, 8: 1.058, 7: 1.085, 6: 1.149, 5: 1.159}}
# The step's peak, and the sum of its ops' times, as DTR's own simulator has them.
PUBLISHED = {"resnet32-56": (10_061_179_152, 291.91), "transformer-10": (9_864_405_000, 276.26),
             "unet-6": (8_415_764_640, 435.28)}


def line(kind, **fields):
    return {"INSTRUCTION": kind} | fields


def made(name, size, alias="-1"):
    return [line("MEMORY", NAME=name, MEMORY=str(size)), line("ALIAS", NAME=name, ALIAS=alias)]


def constant(name, size):
    return [line("CONSTANT", NAME=name), line("MEMORY", NAME=name, MEMORY=str(size))]


def call(op, arguments, result, ns=1000):
    return line("CALL", NAME=op, ARGS=arguments, RESULT=result, TIME=str(ns))


# y = relu_(x @ w) as rows; the gradients of w (left at the end) and of y.
SMALL = [
    line("ANNOTATE", ANNOTATION="START"), *constant("x", 4096), *constant("w", 1024),
    call("mm", ["x", "w"], ["y"]), *made("y", 8192), line("COPY", DST="y2", SRC="y"),
    line("MUTATE", NAME="relu_", ARGS=["y"], MUTATE=[0], TIME="500"), line("RELEASE", NAME="y"),
    call("view", ["y2"], ["rows"], 0), *made("rows", 8192, "0"),
    call("sum", ["rows"], ["loss"]), *made("loss", 4), line("RELEASE", NAME="loss"),
    line("ANNOTATE", ANNOTATION="BACKWARD"),
    call("ones", [], ["g"]), *made("g", 4),
    call("expand", ["g", "rows"], ["gy"]), *made("gy", 8192), line("RELEASE", NAME="g"),
    line("RELEASE", NAME="rows"), line("RELEASE", NAME="y2"),
    call("mm", ["x", "gy"], ["gw"], 2000), *made("gw", 1024), line("RELEASE", NAME="gy"),
    line("RELEASE", NAME="x"),
]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def read(self, lines):
        path = self.folder / "small.log"
        path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
        return dtr_log.read(path)

    def planned(self, program, *arguments):
        path = self.folder / "program.jsonl"
        program.write(path)
        card = [] if "--card" in arguments else ["--card", "a100"]
        ran = subprocess.run([PROGRAM, "plan", path, *card, "--json", *arguments],
                             capture_output=True, text=True)
        self.assertEqual(0, ran.returncode, ran.stderr)
        return json.loads(ran.stdout)["rows"]


class Reading(Case):
    def test_values_and_their_lives(self):
        log = self.read(SMALL)
        # x, w, y (its view is no more bytes), g, gy: the most, before y goes.
        self.assertEqual(4096 + 1024 + 8192 + 4 + 8192, log.peak_bytes())
        self.assertEqual(1000 + 500 + 1000 + 1000 + 1000 + 2000, log.total_ns())

    def test_what_is_no_log_is_refused_at_its_line(self):
        for at, wrong, why in (
                (0, line("JUMP"), "no such instruction: JUMP"),
                (2, line("RELEASE", NAME="x"), "expected MEMORY and ALIAS of x"),
                (2, line("MEMORY", NAME="q", MEMORY="1"), "not being made"),
                (5, line("RELEASE", NAME="q"), "q is not alive"),
                (5, call("mm", ["x", "q"], ["y"]), "q is not alive"),
                (5, call("mm", ["x"], ["y"], -3), "from 0 to"),
                (5, line("COPY", DST="w", SRC="x"), "w is alive already"),
                (7, line("ALIAS", NAME="y", ALIAS="2"), "ALIAS 2 of an op with 2 arguments"),
                (5, {"NAME": "x"}, "KeyError"), (5, 7, "TypeError")):
            with self.subTest(why=why):
                with self.assertRaisesRegex(dtr_log.LogError, f"small.log:{at + 1}: .*{why}"):
                    self.read(SMALL[:at] + [wrong] + SMALL[at + 1:])
        with self.assertRaisesRegex(dtr_log.LogError, "expected ANNOTATE BACKWARD"):
            self.read(SMALL[:8])

    def test_the_command(self):
        self.read(SMALL)
        out = self.folder / "small.jsonl"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(0, dtr.main([str(self.folder / "small.log"), "-o", str(out)]))
        self.assertIn("8 tensors, at most 21508 bytes at once, 0.01 ms of ops", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(2, dtr.main([str(self.folder / "none.log"), "-o", str(out)]))
        self.assertIn("No such file", said.getvalue())


class Programs(Case):
    def test_a_program_that_makes_sense(self):
        program = dtr.program_of(self.read(SMALL), "small")
        check(program)
        forward = program.codes[1].statements
        saves = [each for each in forward if "save" in each]
        self.assertEqual([1, 2], sorted(each["save"] for each in saves))  # rows, and x
        frees = [slot for each in forward if "free" in each for slot in each["free"]]
        rows, = saves[-1]["slots"] if saves[-1]["save"] == 1 else saves[0]["slots"]
        self.assertIn(rows, frees)  # the graph holds it from here on
        self.assertTrue(all(each.get("once") for each in forward if each.get("op") == "constant"))

    @unittest.skipUnless(os.access(PROGRAM, os.X_OK), "the program ferry was not built")
    def test_it_takes_the_logs_time_and_memory(self):
        log = self.read([each | {"MEMORY": str(1024 * int(each["MEMORY"]))} if "MEMORY" in each
                         else each for each in SMALL])
        keep, = self.planned(dtr.program_of(log, "small"), "--policy", "keep")
        rounded = -log.peak_bytes() % (1 << 20)
        self.assertLessEqual(abs(keep["device_peak_bytes"] - log.peak_bytes()), rounded + 4096)

    @unittest.skipUnless(LOGS.is_dir(), NO_LOGS)
    @unittest.skipUnless(os.access(PROGRAM, os.X_OK), "the program ferry was not built")
    def test_the_published_logs(self):
        for name, (peak, total_ms) in PUBLISHED.items():
            with self.subTest(name):
                log = dtr_log.read(LOGS / f"{name}.log")
                self.assertEqual(peak, log.peak_bytes())
                self.assertAlmostEqual(total_ms, log.total_ns() / 1e6, places=2)
                program = dtr.program_of(log, name)
                check(program)
                keep, = self.planned(program, "--policy", "keep")
                # PyTorch's pool gives more than was asked for where it splits no block.
                self.assertLess(abs(keep["device_peak_bytes"] / peak - 1), 0.003)
                self.assertLess(abs(keep["step_ns"] / log.total_ns() - 1), 0.03)

    @unittest.skipUnless(LOGS.is_dir(), NO_LOGS)
    @unittest.skipUnless(os.access(PROGRAM, os.X_OK), "the program ferry was not built")
    def test_best_is_ahead_of_dtr(self):
        for name, curve in CURVES.items():
            program = dtr.program_of(dtr_log.read(LOGS / f"{name}.log"), name)
            for tenths, published in curve.items():
                with self.subTest(name, tenths=tenths):
                    keep, best = self.planned(
                        program, "--card", "titan-v", "--policy", "keep,best", "--allocated",
                        "--budget", str(PUBLISHED[name][0] * tenths // 10))
                    self.assertTrue(best["fits"])
                    self.assertEqual(0, best["hazards"])
                    self.assertLess(best["step_ns"] / keep["step_ns"], published + 0.0005)


if __name__ == "__main__":
    unittest.main()
