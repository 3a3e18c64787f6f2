"""torch_ferry.stream_weights on CUDA: are losses and gradients those of the plain model?"""

import contextlib

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_ferry as ferry

WIDTH = 256
WAYS = ({}, {"ahead": 0}, {"ahead": "16MiB"}, {"pinned": False}, {"keep": 2 * WIDTH * WIDTH * 4})


class Layer(nn.Module):
    """A frozen weight, some trained ones, and a buffer."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.down, self.up = nn.Linear(WIDTH, 4, bias=False), nn.Linear(4, WIDTH, bias=False)
        self.register_buffer("scale", torch.full((), 0.5))

    def forward(self, x):
        return x + self.scale * torch.tanh(self.base(x) + self.up(self.down(x)))


class Model(nn.Module):
    def __init__(self, recompute):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(5))
        self.head = nn.Linear(WIDTH, 8).requires_grad_(False)
        self.recompute = recompute

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.head(x)


def trained(recompute, offload=False, way=None):
    torch.manual_seed(0)
    model = Model(recompute)
    if way is None:
        model.cuda()
    else:
        ferry.stream_weights(model, device="cuda", **{"min_bytes": 1 << 10, **way})
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.1)
    losses = []
    for step in range(3):
        for micro in range(2):
            torch.manual_seed(10 * step + micro)
            x = torch.randn(32, WIDTH, device="cuda")
            with ferry.offload(min_bytes=0) if offload else contextlib.nullcontext():
                loss = model(x).square().mean()
                loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            losses.append(model(x).sum())
    return [*(loss.cpu() for loss in losses), *(p.detach().cpu() for p in trained)]


for recompute in (False, True):
    for offload in (False, True):
        want = trained(recompute, offload)
        print(all(len(want) == len(got) and all(map(torch.equal, want, got))
                  for got in (trained(recompute, offload, way) for way in WAYS)), end=" ")
