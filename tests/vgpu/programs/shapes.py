"""The same operator again, with arguments that are alike in all that its results' shapes follow
from, or in all but one of it: both times the CPU's result. Prints how many pairs were tried.
"""

import itertools

import torch

CALLS = [
    lambda d: torch.ones(2, 3, device=d) + torch.ones(3, device=d),
    lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 1, device=d),
    lambda d: torch.ones(3, 2, device=d).t() + torch.ones(3, device=d),
    lambda d: torch.ones(2, 3, device=d, dtype=torch.int32) + torch.ones(3, device=d),
    lambda d: torch.ones(2, 3, device=d, dtype=torch.int32) + 1.5,
    lambda d: torch.ones(2, 3, device=d, dtype=torch.int32) + 2,
    lambda d: torch.ones(2, 3, device=d, dtype=torch.int32) + torch.tensor(1.5),
    lambda d: torch.ones(2, 3, device=d).sum(0),
    lambda d: torch.ones(2, 3, device=d).sum(1),
    lambda d: torch.ones(2, 3, device=d).sum((0, 1)),
    lambda d: torch.ones(2, 3, device=d).sum(1, keepdim=True),
    lambda d: torch.ones(2, 3, device=d).sum(1, dtype=torch.float64),
    lambda d: torch.arange(0, 5, device=d),
    lambda d: torch.arange(0, 7, device=d),
    lambda d: torch.full((2, 2), 3, device=d),
    lambda d: torch.full((2, 2), 3.0, device=d),
    lambda d: torch.cat([torch.ones(2, device=d), torch.ones(3, device=d)]),
    lambda d: torch.cat([torch.ones(3, device=d), torch.ones(3, device=d)]),
    lambda d: torch.ones(4, device=d)[torch.tensor([0, 1], device=d)],
    lambda d: torch.ones(4, device=d)[torch.tensor([0, 1, 2], device=d)],
    lambda d: torch.ones(4, 4, device=d)[:, torch.tensor([0, 1], device=d)],
    lambda d: torch.nonzero(torch.tensor([0, 1, 1], device=d)),
    lambda d: torch.nonzero(torch.tensor([1, 1, 1], device=d)),
    lambda d: torch.topk(torch.arange(6.0, device=d), 2)[1],
    lambda d: torch.topk(torch.arange(6.0, device=d), 3)[1],
    lambda d: torch.add(torch.ones(3, device=d), 1, out=torch.empty(0, device=d)),
    lambda d: torch.add(torch.ones(3, device=d), 1, out=torch.empty(3, device=d)),
    lambda d: torch.div(torch.ones(3, device=d), 2, rounding_mode="floor"),
    lambda d: torch.div(torch.ones(3, device=d), 2, rounding_mode=None),
    lambda d: torch.ones(3, device=d, dtype=torch.complex64).conj() * 1j,
    lambda d: torch.ones(3, device=d, dtype=torch.complex64) * 1j,
]


def described(tensor):
    return (tensor.dtype, tensor.shape, tensor.stride(), tensor.is_conj(), tensor.cpu().tolist())


expected = {}
for default in (torch.float32, torch.float64):
    torch.set_default_dtype(default)
    expected[default] = [described(call("cpu")) for call in CALLS]
pairs = 0
for default, (first, second) in itertools.product(expected,
                                                  itertools.product(range(len(CALLS)), repeat=2)):
    torch.set_default_dtype(default)
    for which in (first, second):
        found = described(CALLS[which]("cuda"))
        assert found == expected[default][which], (which, found, expected[default][which])
    pairs += 1
print(pairs)
