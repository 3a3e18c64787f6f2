"""timm #2784: batches are made on a stream of their own. Once the consumer has dropped one, another
may be made in the same memory, while the consumer's stream still reads it.

What timm's other files would import (torchvision, its models) is left out.
"""

import sys
from unittest import mock

import torch
from given import leave_out, told

leave_out("timm", "timm.data")
for module in ("dataset", "transforms_factory"):
    sys.modules[f"timm.data.{module}"] = mock.MagicMock()
from timm.data.loader import PrefetchLoader  # noqa: E402


def batches(pinned):
    """What a DataLoader gives: each batch of one value."""
    for value in range(8):
        batch = torch.full((2, 3, 32, 32), value, dtype=torch.uint8), torch.full((2,), value)
        yield [each.pin_memory() for each in batch] if pinned else batch


def results(device):
    found = []
    for _ in range(2):
        loader = PrefetchLoader(batches(device == "cuda"), device=torch.device(device))
        for images, labels in loader:
            found.append((images * labels.view(2, 1, 1, 1)).sin().sum())
            del images, labels
    return found


told(results("cuda"), results("cpu"))
