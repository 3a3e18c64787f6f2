"""PyTorch's tests of checkpoints within checkpoints (TestNestedCheckpoint) and of early stops, with
Ferry's offloading around and with Ferry's checkpoint in the place of PyTorch's (ways.py)."""

import functools

from campaign.pytorchs.ways import Test, checkpoints, each, gradient, torch

from torch.utils.checkpoint import set_checkpoint_early_stop


def leaf():
    return torch.randn(4, 5, requires_grad=True)


def sines(x):
    return x.sin().exp().sin()


def derivatives(function, x):
    """The first three, each by a backward through the one before."""
    y, found = function(x), []
    for _ in range(3):
        y, = torch.autograd.grad(y.sum(), x, create_graph=True)
        found.append(y.detach())
    return found


class Nested(Test):
    def compared(self, way, function, plain):
        """Gradients of three orders are those of the function without checkpoints."""
        x = leaf()
        with way.guard():
            got = derivatives(function, x)
        for one, other in zip(derivatives(plain, x), got):
            self.assertTrue(torch.allclose(one, other))

    # test_nested_checkpoint
    @each(checkpoints)
    def test_each_depth(self, way):
        for early_stop in (True, False):
            function = sines
            with set_checkpoint_early_stop(early_stop):
                for _ in range(4):
                    function = functools.partial(way.checkpoint, function)
                    self.compared(way, function, sines)

    # test_nested_checkpoint_two_children
    @each(checkpoints)
    def test_two_children(self, way):
        def children(call):
            def run(x):
                return call(torch.cos, call(torch.sin, x).exp()).sin()
            return run
        for early_stop in (True, False):
            with set_checkpoint_early_stop(early_stop):
                plain = children(lambda function, x: function(x))
                inner = children(way.checkpoint)
                self.compared(way, functools.partial(way.checkpoint, inner), plain)
                outer = children(lambda function, x: way.checkpoint(
                    functools.partial(way.checkpoint, function), x))
                self.compared(way, outer, plain)

    # test_nested_checkpoint_non_tensor_inputs_and_outputs, test_nested_checkpoint_kwargs
    @each(checkpoints)
    def test_arguments_by_name_and_of_other_kinds(self, way):
        def inner(x, *, scale, name):
            return (x * scale).sin(), name, 7

        def outer(x, text="outer"):
            y, name, seven = way.checkpoint(inner, x, scale=2.0, name="inner")
            return y.exp(), f"{text} {name}", seven
        x = leaf()
        with way.guard():
            y, text, seven = way.checkpoint(outer, x)
        self.assertEqual(("outer inner", 7), (text, seven))
        want, = gradient((x * 2.0).sin().exp(), x)
        self.assertTrue(torch.allclose(want, gradient(y, x)[0]))

    # test_nested_checkpoint_same_graph
    @each(checkpoints)
    def test_one_after_the_other_over_the_same_input(self, way):
        x = leaf()
        with way.guard():
            y = way.checkpoint(sines, x)
            z = way.checkpoint(lambda t: way.checkpoint(sines, t) * y, x)
        got, = gradient(z, x)
        want, = gradient(sines(x) * sines(x), x)
        self.assertTrue(torch.allclose(got, want))

    # test_nested_checkpoint_reentrant_backwards
    @each(checkpoints)
    def test_a_backward_within(self, way):
        def inner(x):
            return x.exp().sin()

        def outer(x):
            with torch.enable_grad():
                y = way.checkpoint(inner, x.detach().requires_grad_())
            within, = torch.autograd.grad(y.sum(), y)
            return way.checkpoint(inner, x) * within.sum()
        x = leaf()
        with way.guard():
            z = way.checkpoint(outer, x)
        self.assertTrue(torch.allclose(gradient(z, x)[0], gradient(inner(x) * 20, x)[0]))


class EarlyStop(Test):
    def count(self, way, early_stop):
        """How often each part of a nest of two runs in forward and backward."""
        ran = {"outer": 0, "inner": 0, "end": 0}

        def inner(x):
            ran["inner"] += 1
            y = x.sin().sin()
            ran["end"] += 1
            return y * 1

        def outer(x):
            ran["outer"] += 1
            return way.checkpoint(inner, x.exp())
        with way.guard(), set_checkpoint_early_stop(early_stop):
            y = way.checkpoint(outer, leaf())
        y.sum().backward()
        return ran

    # test_nested_checkpoint_set_early_stop
    @each(checkpoints)
    def test_it_stops_where_all_is_there(self, way):
        stopped, whole = self.count(way, True), self.count(way, False)
        self.assertEqual(1, stopped["end"])  # forward's alone: the last save comes before it
        self.assertGreater(whole["end"], stopped["end"])
        self.assertEqual(2, stopped["outer"])

    # test_nested_checkpoint_set_early_stop_no_recompution_needed
    @each(checkpoints)
    def test_no_recompute_where_nothing_was_saved(self, way):
        for early_stop in (True, False):
            ran = []

            def run(x):
                ran.append(1)
                return x.clone()
            with way.guard(), set_checkpoint_early_stop(early_stop):
                y = way.checkpoint(run, leaf())
            y.sum().backward()
            self.assertEqual(1, len(ran))
