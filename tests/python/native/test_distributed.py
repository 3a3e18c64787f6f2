"""DDP and FSDP2 over Gloo, two ranks: the same bits with and without a guard."""

import os
import socket
import subprocess
import sys
import unittest

from native.support import torch

SCRIPT = """
import contextlib, sys, torch, torch_ferry as ferry
import torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
dist.init_process_group("gloo")

def model():
    torch.manual_seed(5)
    return nn.Sequential(*[nn.Sequential(nn.Linear(128, 128), nn.GELU()) for _ in range(3)])

def sharded():
    from torch.distributed.fsdp import fully_shard
    made = model()
    for block in made:
        fully_shard(block)
    return fully_shard(made)

def steps(made, guard):
    torch.manual_seed(dist.get_rank())
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(3):
        with guard:
            loss = made(torch.randn(16, 128)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    local = [getattr(p, "to_local", lambda: p)() for p in made.parameters()]
    return [p.detach().clone() for p in local]

for make in (lambda: nn.parallel.DistributedDataParallel(model()), sharded):
    want = steps(make(), contextlib.nullcontext())
    offload = ferry.offload(window=0, min_bytes=0)
    got = steps(make(), offload)
    assert all(torch.equal(a, b) for a, b in zip(want, got))
    assert offload.empty()
    counts = offload.statistics()
    # Of 128 x 128 floats the weights would be 64 KiB each, twice a step and layer under FSDP2;
    # activations are 8 KiB.
    assert counts.offloaded_bytes == 8192 * counts.offloaded_count > 0, counts
dist.barrier()
dist.destroy_process_group()
"""


class TwoRanks(unittest.TestCase):
    def test_ddp_and_fsdp2(self):
        if not torch.distributed.is_available():
            self.skipTest("torch.distributed is not in this torch")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = [subprocess.Popen(
            [sys.executable, "-c", SCRIPT], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": str(port)}) for rank in range(2)]
        errors = [rank.communicate(timeout=200)[1] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], "\n".join(errors))


if __name__ == "__main__":
    unittest.main()
