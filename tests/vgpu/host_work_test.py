"""What the CPU's own operators compute takes the host's time, by the card's rates of a host.

    host_work_test.py FERRY PYTHON
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]

# Weights on the device, their masters and the optimizer on the CPU.
OFFLOADED = """
import torch
model = torch.nn.Linear(1024, 1024, device="cuda")
masters = [p.detach().cpu() for p in model.parameters()]
optimizer = torch.optim.SGD(masters, lr=0.1, momentum=0.9, foreach=False)
for _ in range(4):
    model(torch.ones(8, 1024, device="cuda")).square().mean().backward()
    for master, p in zip(masters, model.parameters()):
        master.grad = p.grad.cpu()
    optimizer.step()
    with torch.no_grad():
        for master, p in zip(masters, model.parameters()):
            p.copy_(master)
    model.zero_grad()
"""
ELEMENTS = 1024 * 1024 + 1024

# Another thread's: the step goes on meanwhile.
BESIDE = """
import threading, torch
x = torch.ones(64, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
def compute():
    for _ in range(50):
        torch.ones(1 << 18).add_(1)
for _ in range(3):
    loader = threading.Thread(target=compute)
    loader.start()
    x.sum().backward()
    optimizer.step()
    loader.join()
"""


def run(code, *options):
    with tempfile.TemporaryDirectory() as folder:
        script, verdict = (pathlib.Path(folder) / name for name in ("script.py", "v.json"))
        script.write_text(code)
        done = subprocess.run(
            [FERRY, "run", "--python", PYTHON, "--hide-gpu", "--json", verdict, *options, script],
            env=dict(os.environ, OMP_NUM_THREADS="1"), capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return json.loads(verdict.read_text())["simulated"]["steps"], done.stderr


class HostWork(unittest.TestCase):
    def test_an_optimizer_on_the_cpu_takes_the_steps_time(self):
        steps, told = run(OFFLOADED)
        for step in steps[1:]:  # from the second, momentum is read and written
            # The gradient, momentum and the weight: buf.mul_, buf.add_, weight.add_, in float32,
            # at 100 GB/s: 2 + 3 + 3 passes over 4 MB.
            optimizer_ns = 8 * 4 * ELEMENTS / 100
            # And the gradient, and the weight, as pageable copies at 6 GB/s.
            copies_ns = 2 * 4 * ELEMENTS / 6
            # Some of it lies beside kernels and the copies' own time, and keeps nobody waiting.
            self.assertLessEqual(step["host_ns"], optimizer_ns + copies_ns)
            self.assertGreater(step["host_ns"], 0.85 * (optimizer_ns + copies_ns))
            self.assertLess(step["host_ns"], step["step_ns"])
        self.assertRegex(told, r"without work \d+ %, of which for the host's own work \d+ %")

    def test_a_slower_host_takes_longer(self):
        desktop, server = (run(OFFLOADED, "--card", card)[0][-1]["host_ns"]
                           for card in ("rtx4090", "h100"))
        self.assertGreater(desktop, server)

    def test_what_another_thread_computes_is_beside_it(self):
        for step in run(BESIDE)[0]:
            self.assertEqual(step["host_ns"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
