"""Steps that draw random numbers, or fill what they saved before: planned under each policy, and
carried out to the bits of the plain step."""

import importlib
import unittest

from native.support import ferry, torch
from torch import nn
from torch.nn import functional

planning = importlib.import_module("torch_ferry.plan")
aten = torch.ops.aten

ROWS = 4096  # a tensor has 1 MiB, or a budget would bind nothing
# Each takes and makes [ROWS, 64] floats. What PyTorch draws with, and what writes an argument.
DRAWS = {
    "rrelu": lambda y, _: functional.rrelu(y, training=True),
    "rrelu_": lambda y, _: functional.rrelu(y * 2, training=True, inplace=True),
    "rrelu_with_noise": lambda y, _: aten.rrelu_with_noise(y, torch.empty_like(y), 0.1, 0.3, True),
    "dropout": lambda y, _: functional.dropout(y),
    "dropout_": lambda y, _: functional.dropout(y * 2, inplace=True),
    "alpha_dropout": lambda y, _: functional.alpha_dropout(y, training=True),
    "feature_alpha_dropout": lambda y, _: functional.feature_alpha_dropout(y, training=True),
    "dropout2d": lambda y, _: functional.dropout2d(y.view(-1, 8, 8, 8)).view(-1, 64),
    "native_dropout": lambda y, _: torch.native_dropout(y, 0.5, True)[0],
    "fractional_max_pool2d": lambda y, _: y + functional.fractional_max_pool2d(
        y.view(-1, 1, 8, 8), 2, output_size=4).mean((2, 3)),
    "fractional_max_pool3d": lambda y, _: y + functional.fractional_max_pool3d(
        y.view(-1, 1, 4, 4, 4), 2, output_size=2).mean((2, 3, 4)),
    "bernoulli": lambda y, _: y * torch.bernoulli(torch.full_like(y, 0.5)),
    "multinomial": lambda y, _: y + y.gather(1, torch.multinomial(y.detach().softmax(1), 1)),
    "poisson": lambda y, _: y * torch.poisson(torch.ones_like(y)),
    "binomial": lambda y, _: y * torch.binomial(torch.ones_like(y), torch.full_like(y, 0.5)),
    "normal": lambda y, _: torch.normal(y, 1.0),
    "randperm": lambda y, _: y[torch.randperm(ROWS)],
    "randint": lambda y, _: y * torch.randint(0, 3, (ROWS, 64)),
    "_standard_gamma": lambda y, _: torch._standard_gamma(y.abs() + 1),
    # Its largest's node dies within a function of PyTorch's that is Python.
    "gumbel_softmax": lambda y, _: y + functional.gumbel_softmax(y, hard=True),
    **{name: lambda y, _, name=name, given=given: y * getattr(torch.empty_like(y), name)(*given)
       for name, given in (("bernoulli_", (0.5,)), ("normal_", ()), ("uniform_", ()),
                           ("exponential_", ()), ("cauchy_", ()), ("log_normal_", ()),
                           ("geometric_", (0.3,)), ("random_", (5,)))},
    "batch_norm": lambda y, net: net.batch(y),
    "instance_norm": lambda y, net: net.instance(y.view(-1, 8, 64)).view(-1, 64),
    "_native_batch_norm_legit": lambda y, net: aten._native_batch_norm_legit(
        y, None, None, net.mean, net.var, True, 0.1, 1e-5)[0],
    "embedding_renorm_": lambda y, net: y + net.embedding(torch.arange(ROWS) % 32),
    "embedding_bag": lambda y, net: y + net.bag(torch.arange(ROWS).view(-1, 1) % 32),
    "attention": lambda y, _: functional.scaled_dot_product_attention(
        *[y.view(1, -1, 8, 64)] * 3, dropout_p=0.3).view(-1, 64),
}


class Net(nn.Module):
    def __init__(self, names):
        super().__init__()
        torch.manual_seed(0)
        self.names, self.linear = names, nn.Linear(64, 64)
        self.batch = nn.BatchNorm1d(64)
        self.instance = nn.InstanceNorm1d(8, affine=True, track_running_stats=True)
        self.embedding = nn.Embedding(32, 64, max_norm=1.0)
        self.bag = nn.EmbeddingBag(32, 64, max_norm=1.0)
        self.register_buffer("mean", torch.zeros(64))
        self.register_buffer("var", torch.ones(64))

    def forward(self, x):
        y = self.linear(x)
        for name in self.names:
            y = functional.layer_norm(DRAWS[name](y, self), (64,))
        return y


def loss_of(y):
    return y.square().mul(torch.linspace(0, 1, 64)).mean()


def trained(names, x, guard):
    """The loss, the gradients and the buffers after a step."""
    net = Net(names)
    torch.manual_seed(3)
    with guard:
        loss = loss_of(net(x))
    loss.backward()
    return [loss.detach(), *(p.grad for p in net.parameters() if p.grad is not None),
            *net.buffers()]


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Drawing(unittest.TestCase):
    def test_what_plain_pytorch_trains_is_planned_and_has_its_bits(self):
        x = torch.linspace(-1, 1, ROWS * 64).view(ROWS, 64)
        names = list(DRAWS)
        want = trained(names, x, ferry.no_offload())
        for policy, budget in (("keep", None), ("offload", None), ("best", "60MiB")):
            with self.subTest(policy=policy):
                plan = ferry.plan(Net(names), x, loss_of, card="t4", optimizer=None,
                                  policies=[policy], budget=budget)
                before = str(ferry.replay_statistics())
                got = trained(names, x, ferry.execute(plan))
                self.assertEqual(len(got), len(want))
                self.assertTrue(all(map(torch.equal, got, want)))
                self.assertEqual(str(ferry.replay_statistics()) == before, policy != "best")
