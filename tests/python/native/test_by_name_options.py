"""`ferry plan` of models that are no config.json, and the options of those that are.

timm, torchvision and diffusers are stood in for by packages of a few lines, with the functions that
Ferry calls: these libraries are not installed beside torch here.
"""

import json
import unittest

from native.asking import CONFIG, Asking
from torch_ferry import by_name, few_layers

TIMM = '''
from torch import nn
class Net(nn.Module):
    pretrained_cfg = {"input_size": (3, 32, 32)}
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 10)
    def forward(self, images):
        return self.head(self.body(images).mean((2, 3)))
def is_model(name): return name == "tiny"
def list_models(): return ["tiny"]
def create_model(name, pretrained): return Net()
'''
DIFFUSERS = '''
from torch import nn
__version__ = "0"
class UNet2DConditionModel(nn.Module):
    @classmethod
    def from_config(cls, config):
        made = cls()
        made.config = type("Config", (dict,), {"__getattr__": lambda self, name: self[name]})(config)
        made.body = nn.Conv2d(4, 4, 3, padding=1)
        return made
    def forward(self, sample, timestep, encoder_hidden_states, return_dict):
        return (self.body(sample) + encoder_hidden_states.mean(),)
'''
UNET = {"in_channels": 4, "out_channels": 4, "sample_size": 8, "cross_attention_dim": 16,
        "addition_embed_type": None}
FUNCTION = '''
import torch
print("hello")
def step(batch=3):
    return torch.nn.Linear(16, 16), (torch.zeros(batch, 16),), lambda made: made.sum()
'''
SCRIPT = '''
import sys
import torch
model = torch.nn.Linear(int(sys.argv[2]), 8).cuda()
optimizer = torch.optim.SGD(model.parameters())
model(torch.randn(8, int(sys.argv[2]), device="cuda")).sum().backward()
optimizer.step()
'''
CODE = '''
from transformers import LlamaConfig, LlamaForCausalLM
class MineConfig(LlamaConfig):
    model_type = "mine"
class Mine(LlamaForCausalLM):
    config_class = MineConfig
'''


class Options(Asking):
    def package(self, name, text):
        (self.home / f"{name}.py").write_text(text)
        about = self.home / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        self.environment["PYTHONPATH"] += f":{self.home}"

    def planned(self, *words):
        ran = self.plan(*words, "--policy", "keep")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def test_a_classifier_of_timm(self):
        self.refused("timm:tiny", 7, "a model of timm needs the package timm: pip install timm")
        self.package("timm", TIMM)
        ran = self.planned("timm:tiny", "--batch", "2", "--tokens", "48")
        self.assertIn("model timm tiny, batch 2, image 3x48x48, dtype f32", ran.stdout)
        self.assertEqual(len(self.cached()), 1)
        self.refused("timm:tini", 2, "timm has no classifier of images named 'tini': expected tiny")
        self.refused("timm:tiny --lora 4", 2, "--lora is for a model of transformers")

    def test_a_pipelines_folder(self):
        folder = self.home / "painter"
        (folder / "unet").mkdir(parents=True)
        (folder / "model_index.json").write_text('{"_class_name": "Painter"}')
        self.refused(str(folder), 2, 'expected a pipeline of diffusers with a "unet"')
        (folder / "model_index.json").write_text(json.dumps(
            {"_class_name": "Painter", "unet": ["diffusers", "UNet2DConditionModel"]}))
        (folder / "unet/config.json").write_text(json.dumps(UNET))
        self.refused(str(folder), 7, "a pipeline's folder needs the package diffusers")
        self.package("diffusers", DIFFUSERS)
        ran = self.planned(str(folder), "--batch", "2")
        self.assertIn("Painter: UNet2DConditionModel, batch 2, image 64x64, dtype f32", ran.stdout)
        self.refused(f"{folder} --tokens 60", 2, "--tokens 60: expected a height and width")

    def test_a_function_of_a_file(self):
        path = self.home / "mine.py"
        path.write_text(FUNCTION)
        ran = self.planned(f"{path}:step", "--batch", "5")
        self.assertIn("step on rtx4090", ran.stdout)
        self.assertIn("batch 5", ran.stdout)
        self.assertIn("hello", ran.stderr)
        self.assertEqual(self.cached(), [])
        path.write_text(FUNCTION.replace('print("hello")', ""))
        self.refused(f"{path}:stop", 2, "cannot import", "stop")
        self.refused(f"{path}:step --tokens 4", 2, "--tokens is for")
        self.refused(f"{path}:step --sft", 2, "--sft is for a model by its name")
        self.refused("none.py:step", 2, "the file none.py does not exist")

    def test_the_arguments_of_a_script(self):
        path = self.home / "train.py"
        path.write_text(SCRIPT)
        ran = self.plan(str(path), "--policy", "keep", "--", "--width", "32")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("script train.py --width 32", ran.stdout)
        self.refused("gpt2 llama3-8b", 2, "llama3-8b: expected one program")

    def test_a_script_on_the_cpu_is_told_what_the_command_has(self):
        path = self.home / "train.py"
        path.write_text(SCRIPT.replace("int(sys.argv[2])", "8").replace(".cuda()", "")
                        .replace(', device="cuda"', ""))
        ran = self.plan(str(path))
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn('put the model and its batch on "cuda"', ran.stderr)
        self.assertNotIn("--device", ran.stderr)

    def test_code_of_a_repository_runs_if_it_is_trusted(self):
        path = self.home / "config.json"
        path.write_text(json.dumps({**CONFIG, "model_type": "mine", "architectures": ["Mine"],
                                    "auto_map": {"AutoConfig": "modeling_mine.MineConfig",
                                                 "AutoModelForCausalLM": "modeling_mine.Mine"}}))
        (self.home / "modeling_mine.py").write_text(CODE)
        self.refused(f"{path} --tokens 16", 2, "its repository: read it, and run it with --trust")
        ran = self.planned(str(path), "--tokens", "16", "--trust")
        self.assertIn("model Mine", ran.stdout)

    def test_options_that_exclude_one_another(self):
        self.refused("hf:o/llama --lora 4 --qlora 4", 2, "--qlora")
        self.refused("hf:o/llama --sft --dpo", 2, "--dpo")
        self.refused("gpt2 --dpo", 2, "--dpo: expected a model")


class Quantized(unittest.TestCase):
    def setUp(self):
        try:
            import transformers as _
        except ImportError:
            self.skipTest("needs transformers")

    def test_weights_of_four_bits_have_the_librarys_layout(self):
        config = {**CONFIG, "num_hidden_layers": 1, "num_key_value_heads": 4}
        program = by_name.capture_config(config, tokens=16, lora=(4, ("q_proj",)), quantized=True)
        made = {line["name"]: line for line in program.globals}
        prefix = "model.layers.0.mlp.gate_proj."  # 64 × 128 weights
        self.assertEqual({name: (made[prefix + name]["dtype"], made[prefix + name]["shape"])
                          for name in ("weight", "scales", "scales_of_scales")},
                         {"weight": ("u8", [4096, 1]), "scales": ("u8", [128]),
                          "scales_of_scales": ("f32", [1])})
        self.assertEqual(made["lm_head.weight"]["dtype"], "f32")  # as PEFT prepares it
        self.assertIn("NF4", program.about["weights"])

    def test_layers_are_repeated(self):
        def lines():
            made = by_name.capture_config({**CONFIG, "num_hidden_layers": 7}, tokens=16,
                                          lora=(4, ("all",)), quantized=True)
            return [*made.lines()][1:]

        few = lines()
        cut, few_layers.Cut = few_layers.Cut, _NoCut
        try:
            self.assertEqual(few, lines())
        finally:
            few_layers.Cut = cut


class _NoCut:
    def __init__(self, _):
        pass

    def program(self, program):
        return program


if __name__ == "__main__":
    unittest.main()
