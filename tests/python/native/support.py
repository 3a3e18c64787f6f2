"""Small models, and what is compared of their steps."""

import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest(f"no torch: {error}")
import torch_ferry as ferry

if not hasattr(ferry, "offload"):
    raise unittest.SkipTest("no module: torch_ferry._C was not built")

from torch import nn

torch.set_num_threads(1)


def mlp(width=64, layers=4):
    torch.manual_seed(1)
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1)]
    return nn.Sequential(*parts), torch.randn(32, width)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


def convnet():
    torch.manual_seed(2)
    return nn.Sequential(nn.Conv2d(3, 16, 3), Block(16), nn.MaxPool2d(2), Block(16),
                         nn.Flatten(), nn.LazyLinear(10)), torch.randn(8, 3, 20, 20)


def gpt2():
    import transformers
    torch.manual_seed(3)
    config = transformers.GPT2Config(n_layer=3, n_head=4, n_embd=64, vocab_size=256,
                                     n_positions=64, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config)

    def loss_of(tokens):
        return model(tokens, labels=tokens).loss
    loss_of.parameters = model.parameters
    return loss_of, torch.randint(0, 256, (4, 64))


MODELS = {"mlp": mlp, "convnet": convnet, "gpt2": gpt2}


def step(model, x, guard, around_backward=False):
    """The loss and all gradients of one step, of fixed random numbers, under a guard."""
    torch.manual_seed(7)
    with guard:
        loss = model(x).pow(2).mean()
        if around_backward:
            loss.backward()
    if not around_backward:
        loss.backward()
    return [loss.detach().clone(), *take_gradients(model)]


def take_gradients(model):
    taken = []
    for parameter in model.parameters():
        taken.append(parameter.grad.clone())
        parameter.grad = None
    return taken


def same(one, other):
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other))
