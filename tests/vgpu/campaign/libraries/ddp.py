"""DistributedDataParallel on Gloo with tensors of CUDA.

    ddp.py RANK RANKS FILE      FILE: where the ranks meet

Each rank is a `ferry run` of its own, with a device of its own. Its gradients are the mean of what
the ranks' batches give on the CPU, one after the other.
"""

import sys

import torch
import torch.distributed
from tiny import gpt2, gradients, told, tokens
from torch.nn.parallel import DistributedDataParallel

rank, ranks = map(int, sys.argv[1:3])


def batch(of):
    return torch.stack([tokens(10 * of + i) for i in range(2)])


def alone(of):
    model = gpt2()
    model(batch(of), labels=batch(of)).loss.backward()
    return gradients(model)


def mean():
    """As DDP takes it: each rank's share, then their sum."""
    shares = [[gradient / ranks for gradient in alone(of)] for of in range(ranks)]
    return [sum(each[1:], start=each[0]) for each in zip(*shares)]


torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank,
                                     world_size=ranks)
model = DistributedDataParallel(gpt2().cuda(), device_ids=[0], bucket_cap_mb=0.05)
for _ in range(3):
    model.zero_grad()
    given = batch(rank).cuda()
    model(given, labels=given).loss.backward()
got = gradients(model)
torch.distributed.destroy_process_group()
told(got, mean())
