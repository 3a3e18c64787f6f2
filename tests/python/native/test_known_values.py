"""Plans of steps whose shapes follow from lengths and masks, carried out: the same bits."""

import importlib
import unittest

from native.support import ferry, same, torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import rnn

planning = importlib.import_module("torch_ferry.plan")
LENGTHS = torch.tensor([5, 9, 2, 7])


class Speech(nn.Module):
    """Sequences of different lengths through a recurrent layer, and CTC's loss of them."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.GRU(16, 32, bidirectional=True), nn.Linear(64, 8)

    def forward(self, x):
        packed = rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        y, lengths = rnn.pad_packed_sequence(self.layer(packed)[0])
        targets = torch.tensor([[1, 2], [3, 4], [5, 0], [6, 7]])
        return functional.ctc_loss(self.head(y).log_softmax(-1), targets, lengths,
                                   torch.tensor([2, 2, 1, 2]), zero_infinity=True)


class Masked(nn.Module):
    """Tokens that are picked, counted, repeated and written by what is known of a mask."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)
        self.scale = torch.tensor(2.5)
        self.register_buffer("weights", torch.linspace(0, 1, 10))

    def forward(self, x):
        mask = torch.arange(10)[:, None] < LENGTHS
        y = functional.gelu(self.first(x)[mask])
        y = self.second(y) * self.scale.item()
        whole = torch.zeros(10, 4, 16)
        whole[mask] = y
        kept = whole[self.weights > 0.5].masked_select(mask[5:, :, None])
        counted = torch.repeat_interleave(y.exp(), torch.bincount(LENGTHS)[mask.sum(0)[0]] + 1, 0)
        return kept.sigmoid().sum() + counted.tanh().sum() \
            + (y @ functional.one_hot(LENGTHS, 16).float().T).exp().sum()


def trained(make, x, guard):
    torch.manual_seed(1)
    model = make()
    with guard:
        loss = model(x)
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in model.parameters())]


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class KnownValues(unittest.TestCase):
    def test_what_is_planned_is_carried_out(self):
        x = torch.linspace(-1, 1, 10 * 4 * 16).view(10, 4, 16)
        for make in (Speech, Masked):
            want = trained(make, x, ferry.no_offload())
            for policy in ("offload", "best"):
                with self.subTest(make.__name__, policy=policy):
                    torch.manual_seed(1)
                    plan = ferry.plan(make(), x, lambda y: y, card="rtx4090", policies=[policy])
                    offload = ferry.execute(plan)
                    self.assertTrue(same(want, trained(make, x, offload)))
                    counts = offload.step_statistics()
                    if policy == "offload":
                        self.assertGreater(counts.offloaded_count, 2)


if __name__ == "__main__":
    unittest.main()
