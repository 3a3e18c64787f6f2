"""Prints the most memory of the GPU that three steps had in use; with "offload" also what the
Offload says of it: in use, and had nothing moved."""

import sys

import torch
from torch import nn

import torch_ferry as ferry

torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
                        for _ in range(6)]).cuda()
x = torch.randn(1024, 64, device="cuda")
offload = ferry.offload(window="512kB") if sys.argv[1] == "offload" else ferry.no_offload()
torch.cuda.reset_peak_memory_stats()
for _ in range(3):
    with offload:
        loss = model(x).sum()
    loss.backward()
torch.cuda.synchronize()
print(torch.cuda.max_memory_allocated())
if sys.argv[1] == "offload":
    counts = offload.statistics()
    print(counts.peak_bytes, counts.peak_without_bytes)
