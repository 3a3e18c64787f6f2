"""`ferry plan` of a model by its name that does not fit: other trainings that would, each captured
and planned."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import transformers
except ImportError:
    transformers = None

PROGRAM = pathlib.Path(os.environ.get("FERRY_PROGRAM", "no-ferry"))
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128,
          "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 4, "vocab_size": 4000, "torch_dtype": "bfloat16"}


@unittest.skipIf(transformers is None, "needs transformers")
@unittest.skipUnless(PROGRAM.exists(), "needs FERRY_PROGRAM, the command")
class WhatHelps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "config.json").write_text(json.dumps(CONFIG))

    def plan(self, *words):
        ran = subprocess.run(
            [PROGRAM, "plan", self.folder / "config.json", "--card", "rtx4090", "--unchecked",
             *words], capture_output=True, text=True, check=False,
            env={**os.environ, "FERRY_PYTHON": sys.executable, "XDG_CACHE_HOME": self.folder})
        self.assertIn(ran.returncode, (0, 3), ran.stderr)
        return ran

    def test_smaller_trainings_that_fit_are_named_with_what_they_need(self):
        size = ("--batch", "4", "--tokens", "512", "--budget", "100MiB")
        first = self.plan(*size, "--policy", "offload")
        self.assertEqual(first.stderr, "")
        answer = first.stdout
        self.assertIn("Nothing fits in 100 MiB.", answer)
        found = dict(re.findall(r"another training: (--(?:batch|tokens) \d+): needs (\S+ \S+), and "
                                "fits", answer))
        self.assertEqual(len(found), 2, answer)
        self.assertRegex(answer, "another training: --lora 16, which trains adapters alone: needs ")
        # The same, asked for.
        (option, needs), *_ = [pair for pair in found.items() if "--tokens" in pair[0]]
        again = self.plan("--batch", "4", *option.split(), "--budget", "100MiB", "--policy",
                          "offload,checkpoint-offload", "--json")
        least = min(row["least_bytes"] for row in json.loads(again.stdout)["rows"] if row["fits"])
        self.assertAlmostEqual(least / 2**20, float(needs.split()[0]), delta=0.06)
