"""Draws steps that write what was there before them: for test_capture_untouched.py.

A `World` has tensors of every kind in every place where a step finds them, generators and modules.
Its step does a drawn list of things to them, and may raise between two. `state()` is all that must
be the same afterwards; `counts` says what was done, so that a test can ask whether enough was.
"""

import random
from collections import Counter

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64)
COUNTER = torch.zeros(4, dtype=torch.int64)  # a global
GENERATOR = torch.Generator()


class Raised(Exception):
    """A step's own."""


class Net(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        for dtype in DTYPES:
            self.register_buffer(f"of_{name_of(dtype)}", tensor(draw, dtype))
        self.plain = tensor(draw, draw.choice(DTYPES))
        self.listed = [tensor(draw, draw.choice(DTYPES)), {"deep": tensor(draw, torch.int64)}]
        self.window = self.of_int64[1:]  # of a buffer's storage
        self.todo = None

    def forward(self, x, ids):
        y = self.norm(self.linear(x))
        self.todo(self, ids, y)
        return y + ids.sum()


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def tensor(draw, dtype):
    return torch.tensor([draw.randint(0, 1) for _ in range(4)]).to(dtype)


class World:
    counts = Counter()

    def __init__(self, seed):
        self.draw = draw = random.Random(seed)
        self.net = Net(draw)
        self.net.linear.weight.grad = torch.ones(4, 4)
        self.inputs = (torch.randn(3, 4), tensor(draw, torch.int64).repeat(3, 1))
        self.closed = [tensor(draw, dtype) for dtype in DTYPES]  # in the loss's closure
        self.weight = torch.ones(4, requires_grad=True)
        self.weight.grad = torch.ones(4)
        self.head = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.generator, self.own = torch.Generator(), random.Random(seed)
        self.left = draw.randrange(60)  # writes until the step raises, where there are as many
        self.net.todo = lambda *given: self.forward(*given)  # no copy of a world with the net

    def forward(self, net, ids, y):
        places = {"buffer": [*net.buffers()], "plain": [net.plain, net.window],
                  "nested": [net.listed[0], net.listed[1]["deep"]], "input": [ids],
                  "global": [COUNTER]}
        torch.manual_seed(5)
        GENERATOR.manual_seed(6)
        self.do(places, y)

    def do(self, places, y):
        for _ in range(10):
            if not self.left:
                self.counts["raised"] += 1
                raise Raised
            self.left -= 1
            place, write = self.draw.choice(list(places)), self.draw.choice(WRITES)
            target = self.draw.choice(places[place])
            if write(target, y):
                self.counts[place, name_of(target.dtype)] += 1
                self.counts[write.__name__] += 1

    def loss(self, y):
        self.generator.manual_seed(7)
        self.do({"closure": self.closed}, y)
        y = y + torch.randn(4, generator=self.generator) + self.own.random() + random.random()
        self.head[1].eval()
        self.head[0].register_forward_hook(lambda *given: None)
        self.head[1].running_mean = self.head[1].running_mean * 2
        self.counts["finished"] += 1
        return (self.head(y) * self.weight).sum()

    def tensors(self):
        parts = [*self.net.parameters(), *self.net.buffers(), *self.head.parameters(),
                 *self.head.buffers(), *self.closed, *self.inputs, self.weight, self.net.plain,
                 self.net.window, self.net.listed[0], self.net.listed[1]["deep"], COUNTER]
        return parts + [part.grad for part in parts if part.is_leaf and part.grad is not None]

    def state(self):
        tensors = [(id(each), type(each), each.dtype, tuple(each.shape), each.stride(),
                    each.requires_grad, each.is_leaf, each._version, bytes_of(each))
                   for each in self.tensors()]
        parts = [(id(part), part.training, sorted(vars(part)), dict(part._forward_hooks))
                 for net in (self.net, self.head) for part in net.modules()]
        torchs = [bytes_of(state) for state in (torch.get_rng_state(), GENERATOR.get_state(),
                                                self.generator.get_state())]
        return tensors, parts, torchs, random.getstate(), self.own.getstate()


def bytes_of(tensor):
    if isinstance(tensor, FakeTensor):
        return "no bytes: a fake tensor"
    flat = torch.empty(0, dtype=torch.uint8).set_(tensor.detach().untyped_storage())
    return bytes(flat.tolist())


def adds_in_place(target, _):
    target.logical_or_(torch.ones_like(target)) if target.dtype == torch.bool else target.add_(1)
    return True


def assigns_items(target, _):
    target[...] = 3 if target.is_complex() else 1 - target.long()
    return True


def copies_into(target, _):
    target.copy_(target.flip(0) if target.dim() == 1 else target + 1)
    return True


def has_it_as_out(target, _):
    torch.logical_not(target, out=target)
    return True


def writes_by_numpy(target, _):
    if target.dtype.is_floating_point or target.dtype.is_complex:  # refused: values not known
        return False
    target.numpy()[...] = 1 - target.numpy().astype(int)
    return True


def writes_its_data(target, _):
    target.data.fill_(1)
    return True


def takes_a_gradients_history(target, y):
    if not target.dtype.is_floating_point:
        return False
    target.mul_(y.mean().to(target))
    return True


def turns_and_grows(target, _):
    target.unsqueeze_(0)
    return target.squeeze_(0) is target


WRITES = (adds_in_place, assigns_items, copies_into, has_it_as_out, writes_by_numpy,
          writes_its_data, takes_a_gradients_history, turns_and_grows)
