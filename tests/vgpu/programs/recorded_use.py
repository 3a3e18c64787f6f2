"""A block that a side stream was said to use is given out again, which the allocator asks an event
for. Its answer orders the block's next life, and not what else the side stream did.

    recorded_use.py [--no-record | --no-wait]   without record_stream, or without the one other wait
"""

import sys

import torch

side = torch.cuda.Stream()
result = torch.zeros(1 << 20, device="cuda")
work = torch.zeros(1 << 10, device="cuda")
block = torch.ones(1 << 20, device="cuda")
address = block.data_ptr()

side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.mul(block, 2, out=result)  # the work
if "--no-record" not in sys.argv:
    block.record_stream(side)
del block
for _ in range(100):  # by when the side stream is done
    work.add_(1)
again = torch.empty(1 << 20, device="cuda")
assert again.data_ptr() == address
again.fill_(3)  # the reuse
if "--no-wait" not in sys.argv:
    torch.cuda.current_stream().wait_stream(side)
total = result.sum()  # the use
torch.cuda.synchronize()
print(total.item())
