"""torch_ferry on CUDA: are its gradients the CPU's, and is nothing left?"""

import time

import torch
from torch import nn

import torch_ferry as ferry

OPTIONS = ({}, {"window": 0, "min_bytes": 1}, {"window": 0, "prefetch": 0, "pinned": False})


def gradients(device, guard, checkpoint=None):
    torch.manual_seed(0)
    parts = [part for _ in range(4)
             for part in (nn.Linear(256, 256), nn.GELU(), nn.LayerNorm(256))]
    model, x = nn.Sequential(*parts).to(device), torch.randn(64, 256).to(device)
    for _ in range(2):
        model.zero_grad()
        with guard:
            y = checkpoint(model, x) if checkpoint else model(x)
            loss = y.square().mean()
        loss.backward()
    return [parameter.grad.cpu() for parameter in model.parameters()]


def ends(offload):
    """The engine's thread of the device is done a moment after the backward that it ran."""
    until = time.monotonic() + 20
    while not offload.empty() and time.monotonic() < until:
        time.sleep(0.01)
    return offload.empty()


want = gradients("cpu", ferry.no_offload())
for options in OPTIONS:
    for checkpoint in (None, ferry.checkpoint):
        offload = ferry.offload(**options)
        same = all(map(torch.equal, want, gradients("cuda", offload, checkpoint)))
        moved = offload.statistics().offloaded_count > 0
        print(same and moved and ends(offload), end=" ")
