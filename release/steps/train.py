"""Runs three backwards on the device of argument 1, and prints a digest of the gradients' bits.

fresh.py runs it on the CPU and under `ferry run`, which must give the same bits.
"""

import hashlib
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
x, model = torch.randn(32, 64).to(sys.argv[1]), model.to(sys.argv[1])
for _ in range(3):
    model(x).square().mean().backward()
digest = hashlib.sha256()
for parameter in model.parameters():
    digest.update(parameter.grad.cpu().numpy().tobytes())
print("bits", digest.hexdigest())
