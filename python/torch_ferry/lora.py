"""Low-rank adapters (Hu et al., 2106.09685) on some linear layers of a model; the rest is frozen.

The result is what PEFT's LoraConfig(r, lora_alpha, target_modules) makes of a bfloat16 model with
PEFT's defaults: the adapters are float32, so their inputs are cast to float32. The presets use it,
so that they need no PEFT. Not here: dropout, and PEFT's initial values (a capture has no values).
"""

import contextlib

from torch import nn
import torch

from . import nf4


class Adapted(nn.Module):
    def __init__(self, base, rank, alpha, dtype):
        super().__init__()
        self.base, self.scaling, self.enabled = base, alpha / rank, True
        self.down = nn.Linear(base.in_features, rank, bias=False, dtype=dtype)
        self.up = nn.Linear(rank, base.out_features, bias=False, dtype=dtype)

    def forward(self, x):
        result = self.base(x)
        if not self.enabled:
            return result
        if isinstance(self.base, nf4.Linear4bit):
            result = result.clone()  # as PEFT does
        made = self.up(self.down(x.to(self.down.weight.dtype))) * self.scaling
        return (result + made).to(result.dtype)


def adapt(model, names, rank=16, alpha=32, dtype=torch.float32):
    """Freezes the model and adds adapters to the layers whose last name part is in `names`."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for name, layer in [*model.named_modules()]:
        parent, _, last = name.rpartition(".")
        if last in names:
            setattr(model.get_submodule(parent), last, Adapted(layer, rank, alpha, dtype))
    return model


@contextlib.contextmanager
def without_adapters(model):
    """A context in which the adapters of the model do nothing."""
    adapters = [layer for layer in model.modules() if isinstance(layer, Adapted)]
    for layer in adapters:
        layer.enabled = False
    try:
        yield
    finally:
        for layer in adapters:
            layer.enabled = True
