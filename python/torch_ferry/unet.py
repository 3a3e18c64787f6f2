"""A U-Net (Ronneberger et al., 1505.04597): five levels down, one in the middle, five up.

Each level is two times convolution, batch norm and ReLU, at half the resolution and twice the
channels of the level above. On the way up, a level also reads the result of the level of its size
on the way down. So early results live longest, and a pipeline has to carry them past stages. The
modules have the names of the levels: enc0 to enc4, mid, dec4 to dec0, head.

Convolutions are padded, so they keep the size (those of the paper crop), and there are batch norms
as in later U-Nets. It is for the preset `unet` (`torch_ferry.presets`).
"""

import torch
from torch import nn
from torch.nn import functional as F

CHANNELS = (64, 128, 256, 512, 1024)
CLASSES = 21


class Pair(nn.Module):
    def __init__(self, channels, out, dtype):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, padding=1, bias=False, dtype=dtype)
        self.norm1 = nn.BatchNorm2d(out, dtype=dtype)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False, dtype=dtype)
        self.norm2 = nn.BatchNorm2d(out, dtype=dtype)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class Down(Pair):
    """A level at half the size of its input."""

    def forward(self, x):
        return super().forward(F.max_pool2d(x, 2))


class Up(Pair):
    """A level at the size of `skip`, which is twice that of x."""

    def __init__(self, channels, out, dtype):
        super().__init__(2 * out, out, dtype)
        self.up = nn.ConvTranspose2d(channels, out, 2, stride=2, dtype=dtype)

    def forward(self, x, skip):
        return super().forward(torch.cat([skip, self.up(x)], 1))


class UNet(nn.Module):
    """The model with its loss, in float32, so that the labels are an input of the step."""

    def __init__(self, dtype):
        super().__init__()
        for i, channels in enumerate(CHANNELS):
            level = Down(CHANNELS[i - 1], channels, dtype) if i else Pair(3, channels, dtype)
            self.add_module(f"enc{i}", level)
        self.mid = Down(CHANNELS[-1], CHANNELS[-1], dtype)
        for i, below in reversed(list(enumerate((*CHANNELS[1:], CHANNELS[-1])))):
            self.add_module(f"dec{i}", Up(below, CHANNELS[i], dtype))
        self.head = nn.Conv2d(CHANNELS[0], CLASSES, 1, dtype=dtype)

    def forward(self, x, labels):
        skips = []
        for i in range(len(CHANNELS)):
            x = getattr(self, f"enc{i}")(x)
            skips.append(x)
        x = self.mid(x)
        for i in reversed(range(len(CHANNELS))):
            x = getattr(self, f"dec{i}")(x, skips.pop())
        return F.cross_entropy(self.head(x).float(), labels)


def build(batch, size, dtype):
    """Returns (module, inputs, loss function); call it under a FakeTensorMode."""
    smallest = 2 ** len(CHANNELS)
    if size % smallest:
        raise ValueError(f"tokens: expected an image size that is a multiple of {smallest}; got "
                         f"{size}")
    inputs = {"x": torch.zeros(batch, 3, size, size, dtype=dtype),
              "labels": torch.zeros(batch, size, size, dtype=torch.int64)}
    return UNet(dtype).train(), inputs, lambda loss: loss
