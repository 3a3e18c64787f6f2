"""TRL #7195: what is saved of a larger tensor is first copied on the device, on the side stream.
Nothing waits for that copy, nor does the side stream wait before it writes there again.
"""

import contextlib

import torch
from given import SIZE, told
from trl.models.activation_offloading import OffloadActivations


def gradients(device, offload=None):
    weights = [torch.full((SIZE[0], 3 * SIZE[0]), 1 / 64, device=device, requires_grad=True)
               for _ in range(3)]
    x = torch.ones(SIZE, device=device)
    with offload or contextlib.nullcontext():
        for weight in weights:
            one, other, last = (x @ weight).view(-1).split(SIZE[0] * SIZE[1])
            x = (one * other + last.sin()).view(SIZE)
        x.sum().backward()
    return [weight.grad for weight in weights]


told(gradients("cuda", OffloadActivations(min_offload_size=1)), gradients("cpu"))
