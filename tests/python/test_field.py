"""The field's models are those of `ferry train`, and its rows are compared as they should be.

FERRY_TRAIN_PROGRAM names the program; without it, or without torch, what needs them is skipped.
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
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench" / "real"
sys.path.insert(0, str(BENCH))

import field_table  # noqa: E402

PROGRAM = os.environ.get("FERRY_TRAIN_PROGRAM")
try:
    import torch
    WHY_NOT = None if PROGRAM else "no program: FERRY_TRAIN_PROGRAM names no ferry-train"
except ImportError as error:
    WHY_NOT = f"no torch: {error}"

GPT = "gpt --layers 2 --width 32 --heads 2 --context 24 --batch 3 --threads 1".split()
LLAMA = ("llama --layers 2 --width 32 --heads 4 --kv-heads 2 --hidden 48 --context 24 --batch 3 "
         "--threads 1").split()


def row(*losses, why_not=""):
    return {"steps": [{"loss": loss} for loss in losses], "why_not": why_not, "note": ""}


class Verdicts(unittest.TestCase):
    def test_rows_of_a_family_are_the_same_bits_or_do_not_agree(self):
        rows = {"keep": row(2.0, 1.0), "checkpoint": row(2.0, 1.0), "trl": row(2.0, 1.0 + 1e-9)}
        self.assertFalse(field_table.verdicts(rows, 1e-3))
        self.assertEqual(rows["checkpoint"]["losses"], "the same bits")
        self.assertIn("other bits from step 2", rows["trl"]["losses"])
        del rows["trl"]
        self.assertTrue(field_table.verdicts(rows, 1e-3))

    def test_families_agree_within_the_tolerance(self):
        rows = {"keep": row(2.0, 1.0), "ferry-keep": row(2.0, 1.0001), "ferry-mixed": row(2.0, 1.0)}
        self.assertFalse(field_table.verdicts(rows, 1e-3))  # of Ferry's rows one has other bits
        self.assertIn("within 0.001", rows["ferry-keep"]["losses"])
        self.assertIn("other bits", rows["ferry-mixed"]["losses"])
        del rows["ferry-mixed"]
        self.assertTrue(field_table.verdicts(rows, 1e-3))
        self.assertFalse(field_table.verdicts(rows, 1e-5))

    def test_a_row_without_steps_says_why_and_is_nobodys_measure(self):
        rows = {"keep": row(why_not="out of memory"), "checkpoint": row(2.0), "trl": row(2.0)}
        self.assertTrue(field_table.verdicts(rows, 1e-3))
        self.assertEqual(rows["checkpoint"]["losses"], "the measure")

    def test_a_family_of_which_no_row_ran_is_named(self):
        ran, failed = {"steps": [{"loss": 1.0}]}, {"steps": []}
        rows = {"keep": failed, "trl": failed, "ferry-keep": ran, "ferry-mixed": failed}
        self.assertEqual(field_table.silent(rows), ["Python"])
        self.assertEqual(field_table.silent({"ferry-keep": ran}), [])

    def test_of_a_row_that_stopped_early_the_steps_that_are_there_count(self):
        rows = {"keep": row(2.0, 1.0), "trl": row(2.0, why_not="over 10 s")}
        self.assertTrue(field_table.verdicts(rows, 1e-3))
        rows = {"keep": row(2.0, 1.0), "trl": row(3.0, why_not="over 10 s")}
        self.assertFalse(field_table.verdicts(rows, 1e-3))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "text").mkdir()
        self.text = self.folder / "text" / "text.txt"
        self.text.write_text("".join(f"{i} ferries cross at {i * i}\n" for i in range(200)))

    def train(self, *words):
        done = subprocess.run([PROGRAM, *words, "--data", self.text.parent], check=True,
                              capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def losses(self, words, steps):
        """Of Python's model, trained by a loop of its own."""
        from field_inputs import read_state, read_text, text_batch
        from field_models import loss_of, make_model
        from field_row import make_optimizer
        state = self.folder / "weights.state"
        self.train(*words, "--steps", "0", "--save", state)
        shape, weights = read_state(state)
        model = make_model(shape, weights)
        optimizer = make_optimizer(model, shape["lr"], "single")
        result = []
        for step in range(steps):
            loss = loss_of(model, *text_batch(read_text(self.text), shape, step))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            result.append(loss.item())
        return result

    def test_python_computes_the_losses_of_ferry_train(self):
        torch.set_num_threads(1)
        for words in (GPT, LLAMA, LLAMA + ["--untied", "--vocabulary", "300"],
                      GPT + ["--dtype", "bf16"], LLAMA + ["--dtype", "bf16"]):
            with self.subTest(" ".join(words)):
                ferry = [line["loss"] for line in self.train(*words, "--steps", "3", "--json")]
                python = self.losses(words, 3)
                self.assertAlmostEqual(python[0], ferry[0], delta=1e-5)
                # AdamW's last bits differ.
                later = 1e-2 if "bf16" in words else 1e-4
                self.assertAlmostEqual(python[2], ferry[2], delta=later)
                self.assertLess(ferry[2], ferry[0])

    def test_weights_of_another_shape_are_refused(self):
        from field_inputs import read_state
        from field_models import make_model
        state = self.folder / "weights.state"
        self.train(*GPT, "--steps", "0", "--save", state)
        shape, weights = read_state(state)
        with self.assertRaisesRegex(ValueError, "block2"):
            make_model(shape | {"layers": 3}, weights)

    def test_the_whole_field_runs_and_a_row_that_fails_stops_no_other(self):
        import field
        result = self.folder / "field.json"
        words = ["field.py", PROGRAM, *GPT, "--text", str(self.text), "--steps", "2", "--rows",
                 "checkpoint,trl,ferry-wrong,ferry-tight", "--json", str(result),
                 "--ferry", "wrong=--policy nothing", "--ferry", "tight=--policy offload --window 0 "
                 "--min-bytes 0"]
        with mock.patch.object(sys, "argv", words), contextlib.redirect_stderr(io.StringIO()), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(field.main(), 0)
        written = json.loads(result.read_text())
        rows = written["rows"]
        self.assertTrue(written["agree"])
        self.assertEqual(len(rows["checkpoint"]["steps"]), 2)
        self.assertIn("no --trl FOLDER", rows["trl"]["why_not"])
        self.assertIn("exit code 2", rows["ferry-wrong"]["why_not"])
        self.assertEqual(rows["ferry-tight"]["losses"].split(":")[0], "of Python's")
        self.assertGreater(rows["ferry-tight"]["moved_bytes"], 1000)
        self.assertGreater(rows["checkpoint"]["rss_bytes"], 1 << 20)
        for name in rows:
            self.assertIn(f"\n{name} ", out.getvalue())

    def test_save_on_cpu_moves_what_autograd_saves(self):
        from field_inputs import read_state, read_text, text_batch
        from field_models import make_model
        from field_row import Row
        state = self.folder / "weights.state"
        self.train(*GPT, "--steps", "0", "--save", state)
        shape, weights = read_state(state)
        model = make_model(shape, weights)
        batch = text_batch(read_text(self.text), shape, 0)
        saved = []

        def pack(tensor):
            saved.append(tensor.nbytes)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            Row("keep", model, False, None).backward(model, batch)
        row_of = Row("save_on_cpu", model, False, None)
        self.assertEqual(row_of.moved_bytes(model, batch), 2 * sum(saved))
        self.assertEqual(Row("keep", model, False, None).moved_bytes(model, batch), 0)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Trl(unittest.TestCase):
    def test_what_is_absent_is_answered_for(self):
        import field_trl
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(FileNotFoundError):
                field_trl.load(folder)
            (pathlib.Path(folder) / "activation_offloading.py").write_text(
                "import psutil\n"
                "from accelerate.logging import get_logger\n"
                "from accelerate.utils.versions import is_torch_version\n"
                "from transformers import is_torch_npu_available\n"
                "FACTS = (0 < psutil.virtual_memory().percent < 100, get_logger('x').name,\n"
                "         is_torch_version('>=', '2.5.0'), is_torch_version('>=', '999.0.0'),\n"
                "         is_torch_npu_available())\n")
            absent = {name: None for name in field_trl.ANSWERS}  # as if none were installed
            absent |= {"accelerate": None}
            with mock.patch.dict(sys.modules, absent):
                module, note = field_trl.load(folder)
        self.assertEqual(module.FACTS, (True, "x", True, False, False))
        self.assertIn("accelerate, transformers, psutil", note)


if __name__ == "__main__":
    unittest.main()
