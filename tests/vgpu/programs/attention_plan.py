"""Attention in half precision under a plan that was made for a card.

    attention_plan.py plan CARD FILE      where there is no GPU: writes the plan
    attention_plan.py run FILE            prints whether all came back right, and how much moved
"""

import sys

import torch

import torch_ferry as ferry


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inwards, self.outwards = torch.nn.Linear(64, 192), torch.nn.Linear(64, 64)

    def forward(self, x):
        heads = self.inwards(x).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
        made = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.outwards(made.transpose(1, 2).flatten(2))


def loss_of(made):
    return made.float().pow(2).mean()


def gradients(model, x, guard):
    model.zero_grad()
    with guard:
        loss = loss_of(model(x))
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


torch.manual_seed(0)
model = torch.nn.Sequential(Block(), Block()).bfloat16()
x = torch.randn(2, 64, 64).bfloat16()
if sys.argv[1] == "plan":
    ferry.plan(model, x, loss_of, card=sys.argv[2], device="cuda",
               policies=["offload"]).save(sys.argv[3])
else:
    model, x = model.cuda(), x.cuda()
    want = gradients(model, x, ferry.no_offload())
    offload = ferry.execute(sys.argv[2])
    got = gradients(model, x, offload)
    print(all(map(torch.equal, want, got)), offload.statistics().offloaded_count > 4)
