"""Plans for a CPU of steps whose kernels PyTorch's formulas do not tell, carried out."""

import importlib
import unittest

from native.support import ferry, torch
from torch import nn

planning = importlib.import_module("torch_ferry.plan")


class Recurrent(nn.Module):
    """oneDNN's LSTM, and cells that write the parts of what they split."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            make(64, 32, bidirectional=True) for make in (nn.LSTM, nn.GRU, nn.RNN))

    def forward(self, x):
        for layer in self.layers:
            x, _ = layer(x)
        return x


class Norms(nn.Module):
    """Under autocast their weights are float32, and what they norm is bfloat16."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList((nn.LayerNorm(64), nn.BatchNorm1d(64), nn.GroupNorm(4, 64)))
        self.between = nn.ModuleList(nn.Linear(64, 64) for _ in self.layers)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for linear, layer in zip(self.between, self.layers):
                x = layer(linear(x.flatten(0, -2)))
        return x


def loss_of(y):
    return y.float().square().mean()


def trained(make, x, guard):
    torch.manual_seed(1)
    model = make()
    with guard:
        loss = loss_of(model(x))
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in model.parameters())]


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class CpuKernels(unittest.TestCase):
    def test_what_is_planned_for_a_cpu_is_carried_out_there(self):
        x = torch.linspace(-1, 1, 7 * 16 * 64).view(7, 16, 64)
        for make in (Recurrent, Norms):
            want = trained(make, x, ferry.no_offload())
            for policy in ("offload", "best"):
                with self.subTest(make=make.__name__, policy=policy):
                    plan = ferry.plan(make(), x, loss_of, card="t4", optimizer=None,
                                      policies=[policy])
                    got = trained(make, x, ferry.execute(plan))
                    self.assertTrue(all(map(torch.equal, got, want)))
