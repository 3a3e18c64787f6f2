"""Frozen weights on the host: the bits of the plain model, in every way of training."""

import contextlib
import gc
import sys
import tempfile
import unittest
from unittest import mock

from native.support import ferry, torch
from torch import nn
from torch.utils.checkpoint import checkpoint

stream_weights = sys.modules["torch_ferry.stream_weights"]
WIDTH, LAYERS = 32, 4
WEIGHT = WIDTH * WIDTH * 4


class Layer(nn.Module):
    """A frozen weight and trained ones beside it, as LoRA has them."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(WIDTH, 4, bias=False), nn.Linear(4, WIDTH, bias=False)
        self.fails = False

    def forward(self, x):
        x = x + torch.tanh(self.base(x) + self.up(self.down(x)))
        if self.fails:
            raise ZeroDivisionError("in the model")
        return x


class Model(nn.Module):
    def __init__(self, call=lambda layer, x: layer(x)):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 8).requires_grad_(False)
        self.call = call

    def forward(self, x):
        for layer in self.layers:
            x = self.call(layer, x)
        return self.head(x)


def made(call=lambda layer, x: layer(x)):
    torch.manual_seed(0)
    return Model(call)


def batch(seed):
    torch.manual_seed(seed)
    return torch.randn(6, WIDTH)


def streamed(model, **options):
    return ferry.stream_weights(model, **{"min_bytes": WEIGHT, **options})


CALLS = {
    "plain": lambda layer, x: layer(x),
    "checkpoint": lambda layer, x: checkpoint(layer, x, use_reentrant=False),
    "reentrant": lambda layer, x: checkpoint(layer, x, use_reentrant=True),
    "ferry": lambda layer, x: ferry.checkpoint(layer, x),
    "twice": lambda layer, x: layer(layer(x)),
}


def train(model, scope=contextlib.nullcontext):
    """Two micro-batches a step, and an evaluation after each. Returns all that came out."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    seen = []
    for step in range(3):
        for micro in range(2):
            x = batch(10 * step + micro).requires_grad_()
            with scope():
                loss = model(x).square().mean()
                loss.backward()
            seen += [loss.detach(), x.grad]
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            seen += [model(x), model(x)]
    return [*seen, *(p.detach().clone() for p in trained)]


class Bits(unittest.TestCase):
    def same(self, want, got):
        self.assertEqual(len(want), len(got))
        for i, (one, other) in enumerate(zip(want, got)):
            self.assertTrue(torch.equal(one, other), i)

    def test_of_each_way_to_call_a_layer(self):
        for name, call in CALLS.items():
            want = train(made(call))
            for options in ({}, {"ahead": 0}, {"ahead": "1MiB"}, {"keep": 2 * WEIGHT},
                            {"units": ["layers.1", "layers.3"]}, {"units": "layers.2"}):
                with self.subTest(name, **options):
                    model = made(call)
                    streamed(model, **options)
                    self.same(want, train(model))

    def test_on_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            model = made()
            streamed(model, disk=folder)
            self.same(train(made()), train(model))

    def test_beside_other_hooks(self):
        scopes = {
            "offload": lambda: ferry.offload(min_bytes=0),
            "save_on_cpu": torch.autograd.graph.save_on_cpu,
            "pair": lambda: torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t)}
        for name, scope in scopes.items():
            for call in ("plain", "checkpoint"):
                with self.subTest(name, call=call):
                    model = made(CALLS[call])
                    streamed(model)
                    self.same(train(made(CALLS[call]), scope), train(model, scope))

    def test_of_two_graphs_at_once_and_of_a_graph_that_is_kept(self):
        def gradients(model):
            one, other = model(batch(1)).sum(), model(batch(2)).sum()
            other.backward(retain_graph=True)
            one.backward()
            other.backward()
            return [p.grad for p in model.parameters() if p.requires_grad]
        model = made()
        streamed(model)
        self.same(gradients(made()), gradients(model))

    def test_of_second_derivatives(self):
        def gradients(model):
            x = batch(1).requires_grad_()
            first, = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
            first.square().sum().backward()
            return [x.grad, *(p.grad for p in model.parameters() if p.requires_grad)]
        model = made()
        streamed(model)
        self.same(gradients(made()), gradients(model))


class Memory(unittest.TestCase):
    def peak(self, step, **options):
        model = made()
        handle = streamed(model, **options)
        for _ in range(3):
            step(model)
        gc.collect()
        self.assertLessEqual(handle.statistics().device_bytes, 2 * WEIGHT)
        return handle.statistics().device_peak_bytes / WEIGHT

    def test_no_more_is_there_than_is_used_and_expected(self):
        self.assertLessEqual(self.peak(lambda model: model(batch(0)).sum().backward()), 2)
        self.assertLessEqual(self.peak(lambda model: model(batch(0)).sum().backward(),
                                       ahead=2 * WEIGHT), 3)

    def test_a_graph_that_nobody_needs_keeps_nothing(self):
        self.assertLessEqual(self.peak(lambda model: model(batch(0))), 2)

    def test_each_weight_comes_once_a_pass(self):
        model = made()
        handle = streamed(model)
        for _ in range(3):
            before = handle.statistics()
            model(batch(0)).sum().backward()
        self.assertLessEqual(handle.statistics().brought_count, before.brought_count + 2 * LAYERS)
        self.assertGreaterEqual(handle.statistics().ahead_count,
                                before.ahead_count + 2 * LAYERS - 2)

    def test_what_is_kept_stays(self):
        for keep, moved in ((0, LAYERS), (WEIGHT, LAYERS - 1), (2 * WEIGHT + 1, LAYERS - 2)):
            self.assertEqual(streamed(made(), keep=keep).statistics().wards, moved)


class WhatUsersDo(unittest.TestCase):
    def test_a_state_dict_has_the_bytes(self):
        model, plain = made(), made()
        streamed(model)
        model(batch(0)).sum().backward()
        self.assertEqual(list(plain.state_dict()), list(model.state_dict()))
        for key, value in plain.state_dict().items():
            self.assertTrue(torch.equal(value, model.state_dict()[key]), key)

    def test_removing_brings_all_back(self):
        model, plain = made(), made()
        handle = streamed(model)
        loss = model(batch(0)).sum()
        handle.remove()
        for one, other in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(one, other))
        loss.backward()  # its graph still refers to the weights
        plain(batch(0)).sum().backward()
        self.assertTrue(torch.equal(model.layers[0].up.weight.grad, plain.layers[0].up.weight.grad))
        streamed(model)

    def test_an_error_in_a_forward_leaves_all_as_it_was(self):
        model, plain = made(), made()
        handle = streamed(model)
        for layer in (1, 3):
            model.layers[layer].fails = True
            with self.assertRaises(ZeroDivisionError):
                model(batch(0))
            model.layers[layer].fails = False
            with self.assertRaisesRegex(RuntimeError, "outside the forward"):  # it was left
                model.layers[layer].base.weight.sum()
            self.assertTrue(torch.equal(model(batch(0)), plain(batch(0))))
        gc.collect()
        self.assertLessEqual(handle.statistics().device_bytes, 2 * WEIGHT)

    def test_if_moving_fails_the_model_is_as_it_was(self):
        model, plain = made(), made()
        move, calls = stream_weights._move, []

        def failing(*args):
            calls.append(args)
            if len(calls) == 3:
                raise MemoryError("no room")
            move(*args)
        with mock.patch.object(stream_weights, "_move", failing):
            with self.assertRaisesRegex(MemoryError, "no room"):
                streamed(model)
        self.assertTrue(torch.equal(model(batch(0)), plain(batch(0))))
        streamed(model)
        self.assertTrue(torch.equal(model(batch(0)), plain(batch(0))))

    def test_tied_weights_move_once_and_not_if_others_use_them(self):
        model = made()
        model.layers[2].base.weight = model.layers[0].base.weight
        plain = made()
        plain.layers[2].base.weight = plain.layers[0].base.weight
        self.assertEqual(streamed(model).statistics().wards, LAYERS - 1)
        self.assertTrue(torch.equal(model(batch(0)), plain(batch(0))))
        model = made()
        model.extra = nn.Linear(WIDTH, WIDTH)
        model.extra.weight = model.layers[0].base.weight
        self.assertEqual(streamed(model).statistics().wards, LAYERS - 1)

    def test_views_of_one_storage_are_one_weight(self):
        def joined():
            model = made()
            whole = torch.cat([layer.base.weight.data for layer in model.layers])
            for layer, part in zip(model.layers, whole.split(WIDTH)):
                layer.base.weight = nn.Parameter(part, requires_grad=False)
            return model
        model = joined()
        self.assertEqual(streamed(model, units=[model]).statistics().wards, 1)
        for want, got in zip(train(joined()), train(model)):
            self.assertTrue(torch.equal(want, got))

    def test_a_use_outside_the_forward_says_what_to_do(self):
        model = made()
        streamed(model)
        self.assertEqual(model.layers[0].base.weight.shape, (WIDTH, WIDTH))
        with self.assertRaisesRegex(RuntimeError, "used outside the forward of its module: list a "
                                                  "module in `units`"):
            model.layers[0].base.weight.sum()


class BadInput(unittest.TestCase):
    def test_is_refused_with_a_reason(self):
        model = made()
        for error, text, call in (
                (TypeError, "expected a torch.nn.Module; got int", lambda: ferry.stream_weights(3)),
                (ValueError, "nothing to move: no unit has a frozen weight of 1048576 bytes",
                 lambda: ferry.stream_weights(model)),
                (ValueError, "nothing to move", lambda: streamed(made().requires_grad_(True))),
                (ValueError, "units: the model has no module 'layer.0'",
                 lambda: streamed(model, units=["layer.0"])),
                (ValueError, "ahead: expected a size", lambda: streamed(model, ahead="much")),
                (ValueError, "keep: all weights stay", lambda: streamed(model, keep="1GiB"))):
            with self.assertRaisesRegex(error, text):
                call()
        streamed(model)
        with self.assertRaisesRegex(ValueError, "on the host already"):
            streamed(model)

    def test_weights_without_bytes_are_refused(self):
        with torch.device("meta"):
            model = Model()
        with self.assertRaisesRegex(ValueError, "layers.0.base.weight has no bytes"):
            streamed(model, device="cpu")
