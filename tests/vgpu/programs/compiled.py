"""Trains what torch.compile made, and compares it with the same on the CPU, which is not compiled.

    compiled.py CASE…
"""

import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.before = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.up = nn.Linear(size, 4 * size)
        self.down = nn.Linear(4 * size, size)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2)
                   for part in self.qkv(self.before(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self, blocks=2, size=32, checkpointed=False):
        super().__init__()
        self.words = nn.Embedding(64, size)
        self.blocks = nn.ModuleList(Block(size) for _ in range(blocks))
        self.head = nn.Linear(size, 64)
        self.checkpointed = checkpointed

    def forward(self, words):
        x = self.words(words)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), words.flatten())


def words(length):
    return torch.randint(64, (2, length), generator=torch.Generator().manual_seed(length))


def gradients(model):
    return [each.grad.cpu() for each in model.parameters()]


def train(lengths, make=Model, **options):
    """Trains one step for each length. Returns the most bytes that a step held after forward."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    plain = make()
    model = copy.deepcopy(plain).cuda()
    compiled = torch.compile(model, **options)
    most = 0
    for length in lengths:
        before = torch.cuda.memory_allocated()
        loss = compiled(words(length).cuda())
        most = max(most, torch.cuda.memory_allocated() - before)
        loss.backward()
        expected = plain(words(length))
        expected.backward()
        torch.testing.assert_close(loss.cpu(), expected, rtol=1e-5, atol=0)
        torch.testing.assert_close(gradients(model), gradients(plain), rtol=1e-4, atol=1e-6)
        for each in (model, plain):
            each.zero_grad()
    return most


def dynamic():
    train([16, 24, 40], dynamic=True)


def graphs():
    train([16] * 5, mode="reduce-overhead")


def recomputed():
    kept = train([16, 16])
    less = train([16], lambda: Model(checkpointed=True))
    with torch._functorch.config.patch(activation_memory_budget=0.1):
        budgeted = train([16])
    assert max(less, budgeted) < 0.8 * kept, (kept, less, budgeted)


def tuned():
    def layer(x, weight):
        return (x @ weight).relu()
    x, weight = torch.randn(2, 64, 64)
    made = torch.compile(layer, mode="max-autotune-no-cudagraphs")(x.cuda(), weight.cuda())
    torch.testing.assert_close(made.cpu(), layer(x, weight))


def layout():
    def mixed(x):
        q = x.permute(1, 2, 0, 3)
        return F.scaled_dot_product_attention(q, q, q).float().square().sum()
    x = torch.randn(8, 2, 4, 16, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    plain, = torch.autograd.grad(mixed(x), x)
    made, = torch.autograd.grad(torch.compile(mixed)(x), x)
    torch.testing.assert_close(made, plain, rtol=2e-2, atol=2e-2)  # eager rounds more often


def optimizer():
    torch.manual_seed(0)
    plain = nn.Linear(8, 8)
    model = copy.deepcopy(plain).cuda()
    steps = []
    for each in (plain, model):
        steps.append(torch.optim.AdamW(each.parameters(), lr=0.1).step)
    steps[1] = torch.compile(steps[1])
    for _ in range(2):
        for each, step in zip((plain, model), steps):
            each(torch.ones(2, 8, device=each.weight.device)).sum().backward()
            step()
    torch.testing.assert_close(model.weight.cpu(), plain.weight)


def dropped():
    x = torch.ones(1000, 100, device="cuda", requires_grad=True)
    made = torch.compile(F.dropout)(x, 0.25)
    made.sum().backward()
    assert abs((made == 0).float().mean().item() - 0.25) < 0.01
    assert torch.equal(made, x.grad)


def attention():
    q, k, v = (each.requires_grad_() for each in torch.randn(3, 1, 2, 128, 16, device="cuda"))
    mask = create_block_mask(lambda _, __, i, j: i >= j, None, None, 128, 128, device="cuda")
    made = torch.compile(flex_attention)(q, k, v, block_mask=mask)
    plain = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(made, plain)
    weights = torch.randn_like(plain)
    torch.testing.assert_close(torch.autograd.grad((made * weights).sum(), (q, k, v)),
                               torch.autograd.grad((plain * weights).sum(), (q, k, v)),
                               rtol=1e-4, atol=1e-5)


for name in sys.argv[1:]:
    globals()[name]()
    print(name)
