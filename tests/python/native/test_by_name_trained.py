"""A plan of a model by its name, executed as it is in a Trainer on the emulated GPU. The Trainer
has the defaults of transformers, and samples have a mask, as tokenizers make them."""

import json
import subprocess
import sys
import unittest

from native.asking import CONFIG, PROGRAM, Asking

TOKENS = 128
SCRIPT = """
import sys
import torch
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments
from torch_ferry.transformers import OffloadCallback

ids = torch.arange(%d)
sample = {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}
def train(plan, sample=sample, **options):
    config = AutoConfig.from_pretrained("config.json")
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    arguments = TrainingArguments("out", per_device_train_batch_size=1, max_steps=2, report_to=[],
                                  save_strategy="no", disable_tqdm=True, **options)
    callback = OffloadCallback(plan=plan, other_shapes="raise")
    Trainer(model=model, args=arguments, train_dataset=[sample] * 2, callbacks=[callback]).train()
    counts = callback.offload.statistics()
    print(plan, counts.packs, counts.other_forwards, callback.offload.empty())

def differs(*arguments, **options):
    try:
        train(*arguments, **options)
    except Exception as error:
        print(str(error).splitlines()[2])

train("layers.plan", gradient_checkpointing=True)
train("operators.plan")
differs("layers.plan")
differs("operators.plan", {name: sample[name] for name in ("input_ids", "labels")})
differs("operators.plan", fp16=True)
""" % TOKENS


class Trained(Asking):
    def test_a_trainer_executes_the_plan_or_says_what_differs(self):
        (self.home / "config.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": 2}))
        for plan, *options in (("layers", "--policy", "checkpoint"),
                               ("operators", "--policy", "knapsack")):
            ran = self.plan("config.json", "--tokens", str(TOKENS), *options, "-o", f"{plan}.plan")
            self.assertEqual(0, ran.returncode, ran.stdout + ran.stderr)
            if plan == "layers":
                self.assertIn("gradient_checkpointing=True", ran.stdout)
        self.assertIn('"spans"', (self.home / "operators.plan").read_text())
        (self.home / "train.py").write_text(SCRIPT)
        ran = subprocess.run(
            [PROGRAM, "run", "--no-values", "--zeros", "--hide-gpu", "--card", "rtx4090",
             "--python", sys.executable, "train.py"], cwd=self.home, text=True,
            env=self.environment, capture_output=True, check=False)
        self.assertEqual(0, ran.returncode, ran.stdout + ran.stderr)
        said = [line for line in ran.stdout.splitlines() if not line.startswith("{")]
        self.assertRegex(said[0], "^layers.plan [1-9][0-9]* 0 True$")
        self.assertRegex(said[1], "^operators.plan [1-9][0-9]* 0 True$")
        for line, text in zip(said[2:], ("set gradient_checkpointing=True", "add a mask of ones",
                                         "under autocast to f16"), strict=True):
            self.assertIn(text, line)


if __name__ == "__main__":
    unittest.main()
