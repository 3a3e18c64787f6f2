"""Two tests that pass in plain pytest. `pytest --ferry` finds that the first one has a race.

fresh.py runs them with an installed pytest plugin and expects one failure.
"""

import torch


def copies(wait):
    side = torch.cuda.Stream()
    source = torch.zeros(1 << 20, device="cuda")
    source.add_(1)
    if wait:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        source.mul_(2)
    torch.cuda.synchronize()


def test_without_a_wait():
    copies(wait=False)


def test_with_a_wait():
    copies(wait=True)
