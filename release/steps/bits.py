"""Checks that offload, an executed plan and a checkpoint give the bits of a plain run.

    bits.py DEVICE

fresh.py runs it with an installed wheel. An AssertionError names what differs.
"""

import sys

import torch

import torch_ferry as ferry

device = sys.argv[1]
torch.manual_seed(0)
layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Dropout(0.1))
          for _ in range(4)]
model, x = torch.nn.Sequential(*layers).to(device), torch.randn(64, 256, device=device)


def loss_fn(output):
    return output.square().mean()


def checkpointed(x):
    for layer in model:
        x = ferry.checkpoint(layer, x, use_reentrant=False)
    return x


def gradients(guard, forward=model):
    torch.manual_seed(1)
    with guard:
        loss = loss_fn(forward(x))
    model.zero_grad()
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


plain = gradients(ferry.no_offload())
plan = ferry.plan(model, x, loss_fn, card="a100", policies=["offload"])
for offload in (ferry.offload(window=0), ferry.execute(plan)):
    assert all(map(torch.equal, plain, gradients(offload))), "other gradients"
    assert offload.statistics().offloaded_bytes > 0 and offload.empty(), offload
assert all(map(torch.equal, plain, gradients(ferry.no_offload(), checkpointed))), "checkpoint"
print("the same bits")
