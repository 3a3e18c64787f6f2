"""`ferry run --cards N`: several virtual GPUs.

    cards_test.py FERRY PYTHON
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
SCHEDULES = ((), ("--seed", "7"), ("--eager",), ("--side-first",), ("--main-first",))

# A layer on each card: what one computes the next one needs.
PIPELINE = """
import torch

class Stages(torch.nn.Sequential):
    def forward(self, x):
        for layer in self:
            x = torch.nn.functional.gelu(layer(x.to(layer.weight.device)))
        return x

def gradients(devices):
    torch.manual_seed(0)
    model = Stages(*(torch.nn.Linear(64, 64) for _ in range(4)))
    for i, layer in enumerate(model):
        layer.to(devices[i % len(devices)])
    model(torch.arange(512.).reshape(8, 64).div(512).to(devices[0])).square().mean().backward()
    return [parameter.grad.cpu() for parameter in model.parameters()]

cards = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
print(len(cards), all(map(torch.equal, gradients(cards), gradients(["cpu"]))))
"""

# The second card fetches what a stream of the first one is still computing.
HANDOVER = """
import sys, torch
side = torch.cuda.Stream("cuda:0")
x = torch.ones(1024, device="cuda:0")
y = torch.empty(1024, device="cuda:1")
torch.cuda._sleep(10_000_000)
x.mul_(2)
if sys.argv[1:] == ["--waits"]:
    side.wait_stream(torch.cuda.current_stream("cuda:0"))
with torch.cuda.stream(side):
    y.copy_(x)
print(y.sum().item())
"""


def run(code, *options, arguments=()):
    with tempfile.TemporaryDirectory() as folder:
        script, verdict = pathlib.Path(folder) / "script.py", pathlib.Path(folder) / "verdict.json"
        script.write_text(code)
        done = subprocess.run(
            [FERRY, "run", "--python", PYTHON, "--hide-gpu", "--json", verdict, *options, script,
             *arguments], env=dict(os.environ, OMP_NUM_THREADS="1"), capture_output=True, text=True,
            timeout=300)
        return done, json.loads(verdict.read_text()) if verdict.exists() else None


class Cards(unittest.TestCase):
    def test_a_model_on_several_cards_has_the_cpus_gradients_under_every_schedule(self):
        for schedule in SCHEDULES:
            done, _ = run(PIPELINE, "--cards", "4", *schedule)
            self.assertEqual((done.returncode, done.stdout), (0, "4 True\n"), done.stderr)
            self.assertIn("0 violations", done.stderr)

    def test_a_card_that_does_not_wait_for_another_is_reported(self):
        for schedule in (), ("--side-first",):
            done, verdict = run(HANDOVER, "--cards", "2", *schedule)
            self.assertEqual((done.returncode, len(verdict["violations"])), (1, 1), done.stderr)
            done, _ = run(HANDOVER, "--cards", "2", *schedule, arguments=["--waits"])
            self.assertEqual((done.returncode, done.stdout), (0, "2048.0\n"), done.stderr)

    def test_each_card_has_its_own_memory_and_the_end_tells_the_fullest(self):
        code = ("import torch\n"
                "kept = [torch.empty(32 << 20, device=device, dtype=torch.uint8)\n"
                "        for device in ('cuda:0', 'cuda:1', 'cuda:1')]\n")
        done, verdict = run(code, "--cards", "3")
        self.assertEqual([device["allocated_bytes"] for device in verdict["simulated"]["devices"]],
                         [32 << 20, 64 << 20, 0])
        self.assertEqual(verdict["simulated"]["allocated_bytes"], 64 << 20)
        self.assertIn("64.0 MiB allocated, 64.0 MiB reserved on cuda:1, the fullest of 3",
                      done.stderr)
        code = ("import torch\n"
                "torch.empty(20 << 30, dtype=torch.uint8, device='cuda:0')\n"
                "kept = torch.empty(20 << 30, dtype=torch.uint8, device='cuda:1')\n"
                "torch.empty(5 << 30, dtype=torch.uint8, device='cuda:1')\n")
        done, _ = run(code, "--cards", "2", "--card", "rtx4090")
        self.assertEqual(done.returncode, 1)
        self.assertIn("CUDA out of memory. Tried to allocate 5.00 GiB. GPU 1 has", done.stderr)

    def test_a_copy_between_cards_takes_their_links_time(self):
        code = ("import torch\n"
                "first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
                "x = torch.empty(1 << 30, device='cuda:0', dtype=torch.uint8)\n"
                "y = torch.empty(1 << 30, device='cuda:1', dtype=torch.uint8)\n"
                "first.record(); y.copy_(x); last.record(); torch.cuda.synchronize()\n"
                "print(first.elapsed_time(last))\n")
        done, _ = run(code, "--cards", "2", "--no-values")
        # The H100's file has NVLink: 450 GB/s in each direction.
        self.assertTrue(2.3 < float(done.stdout) < 3.2, done.stdout + done.stderr)

    def test_a_number_of_cards_that_there_is_not_is_refused(self):
        for wrong in ("0", "9", "many"):
            done, _ = run("", "--cards", wrong)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--cards", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
