"""`python -m torch_ferry.capture train.py`: scripts as people write them, unmodified."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from captures import ROOT, WHY_NOT, forward_of, torch

from torch_ferry.check import check
from torch_ferry.program import load

TRAIN = """
import argparse
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

options = argparse.ArgumentParser()
options.add_argument("--width", type=int, default=8)
width = options.parse_args().width
device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x):
        return self.second(checkpoint(self.first, x, use_reentrant=False))


model = torch.compile(Net().to(device))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
data = DataLoader(TensorDataset(torch.randn(64, width), torch.randint(0, 4, (64,))),
                  batch_size=16, num_workers=2, persistent_workers=True, pin_memory=True)
model.eval()
with torch.no_grad():
    print(model(torch.zeros(2, width, device=device)).sum().item())
model.train()
for number, (x, y) in enumerate(data):
    x, y = x.to(device, non_blocking=True), y.to(device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y) / 2
    scaler.scale(loss).backward()
    if number % 2:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(loss.item())
        raise SystemExit("the script went on")
"""
BRANCH = """
import torch
net = torch.nn.Linear(4, 4).cuda()
y = net(torch.zeros(2, 4, device="cuda"))
if y.mean() > 0:
    y = y * 2
y.sum().backward()
"""
SGD = """
import torch
net, other = torch.nn.Linear(4, 4).half().cuda(), torch.nn.Linear(4, 1).half().cuda()
optimizer = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1, momentum=0.9,
                            foreach=False)
other(net(torch.zeros(2, 4, device="cuda", dtype=torch.half))).sum().backward()
optimizer.step()
"""
SPEECH = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(8, 5).cuda()
optimizer = torch.optim.AdamW(net.parameters())
data = TensorDataset(torch.randn(4, 6, 8), torch.ones(4, 3, dtype=torch.int64),
                     torch.tensor([6, 4, 5, 3]))
for x, y, lengths in DataLoader(data, batch_size=2):
    scores = net(x.cuda()).log_softmax(-1).transpose(0, 1)
    loss = nn.functional.ctc_loss(scores, y.cuda(), lengths, torch.tensor([3, 2]))
    loss.backward()
    print(f"{loss:.3f}")
    optimizer.step()
"""


@unittest.skipIf(torch is None, WHY_NOT)
class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, text, *arguments):
        (self.folder / "train.py").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, "-m", "torch_ferry.capture", "train.py", "-o", "out.jsonl",
             *arguments], cwd=self.folder, env=environment, capture_output=True, text=True)

    def captured(self, text, *arguments):
        done = self.run_it(text, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return check(load(self.folder / "out.jsonl")), done.stderr

    def refused(self, text, expected, *arguments):
        done = self.run_it(text, *arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, expected)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual([each.name for each in self.folder.iterdir()], ["train.py"])

    def test_a_triton_kernel_is_named(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            driver = pathlib.Path(elsewhere, "triton", "launches.py")
            driver.parent.mkdir()
            driver.write_text("def launch():\n    assert False, 'libcuda.so cannot found'\n")
            self.refused(
                f"import sys, torch\nsys.path.insert(0, {str(driver.parent)!r})\nimport launches\n"
                "model = torch.nn.Linear(4, 4).cuda()\n"
                "loss = model(torch.ones(2, 4, device='cuda')).sum()\n"
                "launches.launch()\nloss.backward()\n",
                "train.py:6 launches a Triton kernel, and a capture sees PyTorch's own operators")

    def test_a_training_as_it_is(self):
        program, said = self.captured(TRAIN, "--", "--width", "32")
        self.assertEqual(program.about["script"], "train.py --width 32")
        self.assertEqual(program.about["optimizer"], "adamw fused")
        self.assertEqual(program.about["microbatches"], "2")
        self.assertRegex(program.about["compiled"], "^Net: as written")
        self.assertIn("--optimizer adamw --optimizer-implementation fused --microbatches 2 "
                      "--clip-grad-norm --grad-scaler --card CARD\n", said)
        self.assertEqual(program.about["clipped"], "clip_grad_norm_")
        self.assertEqual(program.about["scaled"], "GradScaler")
        self.assertEqual(program.globals[0]["shape"], [32, 32])
        self.assertEqual([line["enter"] for line in forward_of(program, "enter")
                          if "arguments" in line], ["checkpoint.0"])
        products = [line["out"][0]["dtype"] for line in forward_of(program, "op")
                    if line["op"] == "aten.addmm"]
        self.assertEqual(products, ["bf16", "bf16"])  # one forward, that of the training

    def test_numbers_outside_of_the_step_are_told(self):
        program, _ = self.captured(TRAIN)
        line = 1 + TRAIN.splitlines().index(
            "    print(model(torch.zeros(2, width, device=device)).sum().item())")
        self.assertIn(f"train.py:{line}", program.about["assumed zeros"])

    def test_parameters_of_modules_that_are_not_the_first(self):
        program, said = self.captured(SGD)
        self.assertEqual([(line["name"], line.get("grad")) for line in program.globals],
                         [("weight", True), ("bias", True), ("other.2", True),
                          ("other.3", True), ("input.0", None)])
        self.assertIn("--optimizer momentum --optimizer-implementation for-loop", said)

    def test_a_branch_within_the_step_is_refused_with_its_line(self):
        self.refused(BRANCH, r"train\.py:5 asks for a tensor's value")
        program, said = self.captured(BRANCH, "--assume", "zeros")
        self.assertIn("train.py:5", program.about["assumed zeros"])
        self.assertIn("--optimizer none", said)

    def test_lengths_that_a_data_set_gives_are_known(self):
        program, _ = self.captured(SPEECH)
        loss = [line["out"][1]["shape"] for line in forward_of(program, "op")
                if line["op"] == "aten._ctc_loss"]
        self.assertEqual([[2, 6, 7]], loss)
        line = 1 + SPEECH.splitlines().index('    print(f"{loss:.3f}")')
        self.assertIn(f"train.py:{line}", program.about["assumed zeros"])

    def test_lengths_that_are_drawn_are_not(self):
        self.refused(SPEECH.replace("torch.tensor([3, 2])", "y.sum(1) + torch.randint(1, (2,))"),
                     r"train\.py:11 asks for .*result of ctc_loss.*give lengths")

    def test_a_training_on_the_cpu_is_captured_as_one(self):
        text = SGD.replace(".cuda()", "").replace('device="cuda", ', "")
        self.refused(text, r'train\.py:6 calls a model that is on the CPU, .*"cuda".* --device cpu')
        program, _ = self.captured(text, "--device", "cpu")
        self.assertEqual(program.about["device"], "cpu")

    def test_what_is_no_training_is_refused(self):
        self.refused("print(1)", "without a backward")
        self.refused("import torch\ntorch.zeros(2, device='cuda') + torch.zeros(3, device='cuda')",
                     r"train\.py:2: ")
        self.refused("x = (", "SyntaxError")
        self.refused(SGD, "the script's own options after --", "--batch", "3")
        self.refused(SGD, "assumption", "--assume", "luck")


if __name__ == "__main__":
    unittest.main()
