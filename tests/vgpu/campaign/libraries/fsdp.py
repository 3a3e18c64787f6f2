"""FSDP2 on Gloo with tensors of CUDA: every block and the model are sharded.

    fsdp.py RANK RANKS FILE      as ddp.py

Each rank holds its own rows of every gradient to the CPU's, which has been given the same batch.
"""

import sys

import torch
import torch.distributed
from tiny import gpt2, gradients, told, tokens
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

rank, ranks = map(int, sys.argv[1:3])
torch.cuda.set_device(0)
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank,
                                     world_size=ranks)
batch = torch.stack([tokens(i) for i in range(2)])


def sharded():
    model, mesh = gpt2().cuda(), init_device_mesh("cuda", (ranks,))
    for part in (*model.transformer.h, model):
        fully_shard(part, mesh=mesh)
    for _ in range(2):
        model.zero_grad()
        model(batch.cuda(), labels=batch.cuda()).loss.backward()
    return [parameter.grad.to_local().cpu() for parameter in model.parameters()]


def whole():
    model = gpt2()
    model(batch, labels=batch).loss.backward()
    return gradients(model)


def mine(gradient):
    rows = torch.chunk(gradient, ranks)
    return rows[rank] if rank < len(rows) else gradient[:0]


got = sharded()
torch.distributed.destroy_process_group()
told(got, map(mine, whole()))
