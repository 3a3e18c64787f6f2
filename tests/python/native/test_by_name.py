"""`ferry plan` of a model by its name: the hub's config.json, captured and cached."""

import json
import os
import signal
import subprocess
import time
import unittest

from native.asking import CONFIG, PROGRAM, PROGRAMS, Asking


class ByName(Asking):
    def test_a_name_is_captured_once(self):
        options = ("hf:o/llama", "--tokens", "128", "--batch", "2", "--policy", "keep", "--json")
        first = self.plan(*options)
        self.assertEqual(first.returncode, 0, first.stderr)
        table = json.loads(first.stdout)
        self.assertEqual(table["program"], "llama")
        program, = self.cached()
        self.assertIn('"lm_head.weight","dtype":"bf16","shape":[1000,64]', program.read_text())
        self.assertIn('model.layers.5.', program.read_text())
        self.assertIn('"optimizer":"adamw fused","clipped":"clip_grad_norm_"', program.read_text())
        # The second time neither the hub nor torch is needed.
        again = self.plan(*options, HF_ENDPOINT="http://127.0.0.1:9")
        self.assertEqual((again.returncode, again.stdout), (0, first.stdout), again.stderr)
        self.assertEqual(self.cached(), [program])

    def test_a_file_with_adapters(self):
        path = self.home / "config.json"
        path.write_text(json.dumps(CONFIG))
        ran = self.plan(str(path), "--tokens", "64", "--lora", "4,q_proj", "--policy", "keep")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("lora rank 4 on q_proj", ran.stdout)
        program, = self.cached()
        trained = [line for line in program.read_text().splitlines() if '"grad":true' in line]
        self.assertEqual(len(trained), 2 * CONFIG["num_hidden_layers"])
        self.refused(f"{path} --lora 4,q", 2, "no linear layer is named 'q'", "q_proj")
        self.refused(f"{path} --lora 0", 2, "--lora 0: expected a rank")

    def test_what_the_hub_refuses(self):
        self.refused("hf:o/none", 2, "no such repository, or it is private")
        self.refused("hf:o/gated", 7, "gated", "https://huggingface.co/o/gated", "hf auth login")
        self.refused("hf:o/pipeline", 2, "has no config.json")
        self.refused("hf:o/new", 2, "has no model_type 'llama99'", "update transformers")
        self.refused("hf:o/broken", 2, "line 1")
        self.refused("hf:a/b/c", 2, "expected hf:ORG/NAME")
        self.refused("hf:o/llama", 7, "cannot be reached", HF_ENDPOINT="http://127.0.0.1:9")
        self.refused("hf:o/llama", 7, "cannot be reached", HF_HUB_OFFLINE="1")
        self.assertEqual(self.cached(), [])

    def test_files_that_are_no_models(self):
        for name, text, said in (("list.json", "[]", "model_type"),
                                 ("bytes.json", b"\xff\xfe\xff", "not text"),
                                 ("other.json", '{"model_type": 3}', "model_type")):
            path = self.home / name
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            self.refused(str(path), 2, said)
        self.refused("none.json", 2, "No such file")

    def test_a_program_may_be_named_json(self):
        path = self.home / "program.json"
        path.write_text((PROGRAMS / "unet.jsonl").read_text())
        ran = self.plan(str(path), "--policy", "keep", FERRY_PYTHON="none")
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_options_of_a_model_are_for_models(self):
        self.refused("gpt2 --tokens 4", 2, "--tokens: expected a model")

    def test_a_script(self):
        path = self.home / "train.py"
        path.write_text("import torch\nprint('hello')\n"
                        "model = torch.nn.Linear(64, 64).cuda()\n"
                        "optimizer = torch.optim.AdamW(model.parameters(), fused=True)\n"
                        "model(torch.randn(8, 64, device='cuda')).sum().backward()\n"
                        "optimizer.step()\n")
        ran = self.plan(str(path), "--policy", "keep")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("train on rtx4090", ran.stdout)
        self.assertIn("hello", ran.stderr)
        self.assertNotIn(str(self.home), ran.stderr)  # no advice about a file of the cache
        self.assertEqual(self.cached(), [])
        self.refused(f"{path} --batch 2", 2, "--batch is for a model by its name")

    def test_without_the_package(self):
        self.refused("hf:o/llama", 7, "cannot run none", FERRY_PYTHON="none")

    def test_ctrl_c_leaves_nothing(self):
        path = self.home / "config.json"
        path.write_text(json.dumps({**CONFIG, "num_hidden_layers": 4}))
        with subprocess.Popen(
                [PROGRAM, "plan", path, "--card", "rtx4090"], env=self.environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as ran:
            time.sleep(1.5)
            os.killpg(ran.pid, signal.SIGINT)
            printed, said = ran.communicate(timeout=60)
        self.assertEqual((ran.returncode, printed), (128 + signal.SIGINT, ""), said)
        self.assertNotIn("Traceback", said)
        self.assertEqual(self.cached(), [])


if __name__ == "__main__":
    unittest.main()
