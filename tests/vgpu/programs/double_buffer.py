"""Two buffers, filled by a side stream while the default one works: right as it stands.

    double_buffer.py [--no-load | --no-use]     without the wait for the load, or for the use
"""

import sys

import torch

PAGES = 6
WAIT_FOR_LOAD = "--no-load" not in sys.argv
WAIT_FOR_USE = "--no-use" not in sys.argv

side = torch.cuda.Stream()
pages = [torch.full((512,), float(i)).pin_memory() for i in range(PAGES)]
buffers = [torch.empty(512, device="cuda") for _ in range(2)]
loaded = [torch.cuda.Event() for _ in range(2)]
used = [torch.cuda.Event() for _ in range(2)]


def fill(i):
    with torch.cuda.stream(side):
        if WAIT_FOR_USE:
            side.wait_event(used[i % 2])
        buffers[i % 2].copy_(pages[i], non_blocking=True)  # the fill
        loaded[i % 2].record()


def use(i):
    if WAIT_FOR_LOAD:
        torch.cuda.current_stream().wait_event(loaded[i % 2])
    doubled = buffers[i % 2] * 2  # the use
    used[i % 2].record()
    return doubled.sum()


sums = []
fill(0)
for page in range(PAGES):
    if page + 1 < PAGES:
        fill(page + 1)
    sums.append(use(page))
torch.cuda.synchronize()
print([value.item() for value in sums] == [1024.0 * i for i in range(PAGES)])
