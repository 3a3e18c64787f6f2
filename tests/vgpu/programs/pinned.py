"""The CPU's own reads and writes of page-locked memory: right as it stands.

    pinned.py [--no-read-wait | --no-write-wait | --no-scalar-wait]
"""

import sys

import torch

HOST = torch.empty(64, pin_memory=True)
SCALAR = torch.empty((), pin_memory=True)


def read(wait):
    """A result that comes back."""
    made = torch.full((64,), 2.0, device="cuda")
    HOST.copy_(made, non_blocking=True)  # the copy back
    if wait:
        torch.cuda.current_stream().synchronize()
    return HOST.sum()  # the read


def write(wait):
    """A buffer that is filled again."""
    HOST.fill_(1.0)
    arrived = HOST.to("cuda", non_blocking=True)  # the copy there
    done = torch.cuda.Event()
    done.record()
    if wait:
        done.synchronize()
    HOST[:8].add_(1)  # the write
    return arrived.sum()


def scalar(wait):
    """A number that a CUDA operator takes from the host."""
    SCALAR.copy_(torch.full((), 3.0, device="cuda"), non_blocking=True)
    if wait:
        torch.cuda.synchronize()
    return torch.ones(4, device="cuda") * SCALAR  # the number


def unread():
    """Nothing of it is read: views, sizes, and other bytes of the same memory."""
    pair = torch.zeros(2, 32, pin_memory=True)
    pair[0].copy_(torch.ones(32, device="cuda"), non_blocking=True)
    pair[1].add_(1)
    view = pair.view(64)[:3]
    return view.is_pinned(), view.shape, pair.t().is_contiguous()


results = [read("--no-read-wait" not in sys.argv), write("--no-write-wait" not in sys.argv),
           scalar("--no-scalar-wait" not in sys.argv).sum()]
print(*(result.item() for result in results))
unread()
for _ in range(8):  # blocks of the pinned allocator that are given out again
    torch.ones(64).pin_memory().to("cuda", non_blocking=True)
torch.cuda.synchronize()
