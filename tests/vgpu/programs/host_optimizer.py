"""torch_ferry.optimizer on CUDA: are its parameters and its state those of the plain optimizer?"""

import torch
from torch import nn

import torch_ferry as ferry

PIECE = 1 << 16
KINDS = {
    "AdamW": lambda params: torch.optim.AdamW(params, lr=1e-3),
    "for-loop": lambda params: torch.optim.AdamW(params, lr=1e-3, foreach=False),
    "fused": lambda params: torch.optim.AdamW(params, lr=1e-3, fused=True),
    "capturable": lambda params: torch.optim.AdamW(params, lr=1e-3, capturable=True),
    "SGD": lambda params: torch.optim.SGD(params, lr=1e-3, momentum=0.9),
    "Muon": lambda params: torch.optim.Muon(params, lr=1e-3),
    "Adafactor": lambda params: torch.optim.Adafactor(params, lr=1e-3),
}
WAYS = ({}, {"in_backward": True}, {"in_backward": True, "ahead": 0, "behind": 0},
        {"pinned": False})


def trained(kind, way=None, steps=3):
    torch.manual_seed(0)
    model = nn.Sequential(*[part for _ in range(3) for part in
                            (nn.Linear(200, 200, bias=False), nn.GELU())]).cuda()
    optimizer = KINDS[kind](model.parameters())
    if way is not None:
        ferry.optimizer(optimizer, **{"piece": PIECE, "ahead": 2 * PIECE, "behind": PIECE,
                                      "min_bytes": 0, **way})
    for step in range(steps):
        torch.manual_seed(step)
        model(torch.randn(32, 200, device="cuda")).square().mean().backward()
        if not (way or {}).get("in_backward"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        optimizer.zero_grad()
    state = optimizer.state_dict()["state"]
    return [*map(torch.Tensor.cpu, model.parameters()),
            *(value.cpu() for each in state.values() for value in each.values())]


for kind in KINDS:
    want = trained(kind)
    print(all(len(want) == len(got) and all(map(torch.equal, want, got))
              for got in (trained(kind, way) for way in WAYS)), end=" ")
