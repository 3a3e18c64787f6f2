"""The examples of docs/guides/hugging-face.md run, one after the other, on a tiny model."""

import contextlib
import io
import os
import pathlib
import re
import unittest

from native import hugging_face
from native.hugging_face import Folder, SAMPLES, batch, gpt2, sample, torch
from native.support import ferry
from native.test_planning import planning

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/hugging-face.md"


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Page(Folder):
    def test_its_examples_run(self):
        trl = hugging_face.trls()
        blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        self.assertEqual(5, len(blocks))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        data = [sample(index) for index in range(SAMPLES)]
        names = {
            "Trainer": hugging_face.transformers.Trainer, "SFTTrainer": trl.SFTTrainer,
            "arguments": self.arguments(eval_strategy="no", max_steps=2), "samples": data,
            "sft_arguments": self.arguments(
                trl.SFTConfig, eval_strategy="no", max_steps=2, max_length=32,
                remove_unused_columns=False, dataset_kwargs={"skip_prepare_dataset": True}),
            "data": trl.samples(data), "tokenizer": hugging_face.words(), "batch": batch(),
            "torch": torch, "ferry": ferry}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            for number, block in enumerate(blocks):
                names["model"] = gpt2()
                if "train.plan" in block:
                    names["callback"].plan.save("train.plan")
                exec(compile(block, f"example {number}", "exec"), names)
        self.assertIn("planned: ", said.getvalue())
        self.assertIn("copied to the host", said.getvalue())


if __name__ == "__main__":
    unittest.main()
