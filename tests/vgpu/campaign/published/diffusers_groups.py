"""diffusers brings a model's weights to the device group by group, on a stream of its own. A group
that has left gives its memory to the next one, while the compute stream may still read it.

    diffusers_groups.py [--record] [--disk] [--blocks]

--record: record_stream, which 0.35.2 calls with the stream of the copies. --disk: weights leave for
a file. --blocks: a group is a block of a list, and the model has nothing besides.
"""

import sys
import tempfile

import torch
from diffusers.hooks import apply_group_offloading
from given import SIZE, told


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(*SIZE, bias=False) for _ in range(6))

    def forward(self, x):
        for block in self.blocks:
            x = block(x).sin()
        return x


def outputs(model, device):
    x = torch.ones(SIZE, device=device)
    return [model(x * i) for i in range(3)]


with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
    groups = {"offload_type": "leaf_level"}
    if "--blocks" in sys.argv:
        groups = {"offload_type": "block_level", "num_blocks_per_group": 1}
    model = Model()
    apply_group_offloading(model, onload_device=torch.device("cuda"), use_stream=True,
                           record_stream="--record" in sys.argv,
                           offload_to_disk_path=folder if "--disk" in sys.argv else None, **groups)
    told(outputs(model, "cuda"), outputs(Model(), "cpu"))
