"""ferry.checkpoint in the place of torch.utils.checkpoint.checkpoint."""

import contextlib
import gc
import unittest
import weakref

from native.support import convnet, ferry, mlp, same, step, torch

from torch.utils import checkpoint as pytorch


def leaf():
    return torch.linspace(-1, 1, 4096).requires_grad_()


def in_segments(model, checkpoint, **options):
    def run(x):
        for i in range(0, len(model), 3):
            x = checkpoint(model[i:i + 3], x, **options)
        return x
    run.parameters = model.parameters
    return run


class DropIn(unittest.TestCase):
    """The same bits as PyTorch's, and as none at all."""

    def test_models_with_dropout_and_batch_norm(self):
        for make in (mlp, convnet):
            for use_reentrant in (False, True):
                with self.subTest(model=make.__name__, use_reentrant=use_reentrant):
                    model, x = make()
                    x = x.requires_grad_()
                    none = contextlib.nullcontext()
                    step(model, x, none)
                    options = {"use_reentrant": use_reentrant}
                    want = step(in_segments(model, pytorch.checkpoint, **options), x, none)
                    got = step(in_segments(model, ferry.checkpoint, **options), x, none)
                    self.assertTrue(same(want, got))

    def test_what_is_read_from_outside_is_as_it_was(self):
        for use_reentrant in (False, True):
            def after_a_write(**options):
                shift = torch.ones(4096)
                x = leaf()
                loss = ferry.checkpoint(lambda x: (x + shift).sin(), x,
                                        use_reentrant=use_reentrant, **options).sum()
                shift.mul_(2)
                loss.backward()
            with self.subTest(use_reentrant=use_reentrant):
                with self.assertRaisesRegex(ferry.CheckpointError,
                                            r"read a tensor from outside .*\[4096\].*aten::add"):
                    after_a_write()
                after_a_write(determinism_check="none")

    def test_pytorchs_guards_override_the_arguments(self):
        def ends(guard):
            ended = []

            def function(x):
                y = x.exp()
                ended.append(True)
                return y
            with guard:
                loss = ferry.checkpoint(function, leaf()).sum()
            loss.backward()
            return len(ended)
        self.assertEqual(ends(contextlib.nullcontext()), 1)
        self.assertEqual(ends(pytorch.set_checkpoint_early_stop(False)), 2)

        def shrinking(x):
            return (x if ferry.is_checkpointing() else x[:10]).sin().sum()
        with pytorch.set_checkpoint_debug_enabled(True):
            loss = ferry.checkpoint(shrinking, leaf())
        with self.assertRaisesRegex(ferry.CheckpointError, "aten::sin"):
            loss.backward()

    def test_backwards_of_one_group_recompute_once(self):
        def recomputes(checkpoint, group):
            """Of two calls, each of two results whose backwards are apart."""
            ran = []

            def two(x):
                ran.append(1)
                return x.exp().sin(), x.cos().sin()
            x = leaf()
            one, other = checkpoint(two, x, use_reentrant=False)
            gradients = []
            for y in (one, other):
                with group():
                    gradients += torch.autograd.grad(y.sum(), x)
            return len(ran) - 1, gradients
        alone, together = [], []
        for checkpoint in (pytorch.checkpoint, ferry.checkpoint):
            group = pytorch.GraphExecGroup()
            alone.append(recomputes(checkpoint, contextlib.nullcontext))
            together.append(recomputes(checkpoint, lambda: group))
        self.assertEqual([2, 2], [count for count, _ in alone])
        self.assertEqual([1, 1], [count for count, _ in together])
        for _, gradients in alone + together:
            self.assertTrue(same(alone[0][1], gradients))

    def test_what_a_group_recomputed_goes_with_it(self):
        import numpy
        group = pytorch.GraphExecGroup()
        made = []

        def scaled(x):
            scale = numpy.full(4096, 2, numpy.float32)  # it lives as long as what is saved of it
            made.append(weakref.ref(scale))
            return x * torch.from_numpy(scale)
        one, other = ferry.checkpoint(lambda x: (scaled(x), scaled(x)), leaf())

        def alive():
            gc.collect()
            return [ref() is not None for ref in made]
        self.assertEqual([False, False], alive())
        with group:
            one.sum().backward(retain_graph=True)
        self.assertEqual([False, False, False, True], alive())
        with self.assertRaisesRegex(ferry.CheckpointError, "GraphExecGroup"), group:
            one.sum().backward()
        with group, self.assertRaisesRegex(RuntimeError, "cannot be nested"):
            with pytorch.GraphExecGroup():
                pass
        del group
        self.assertEqual([False] * 4, alive())
        other.sum().backward()

    def test_a_function_may_ask_which_run_it_is(self):
        told = []

        def function(x):
            told.append((ferry.is_checkpointing(), ferry.is_recomputing()))
            return x.sin()
        for use_reentrant in (False, True):
            ferry.checkpoint(function, leaf(), use_reentrant=use_reentrant).sum().backward()
        self.assertEqual(told, [(True, False), (False, True)] * 2)
        self.assertFalse(ferry.is_checkpointing() or ferry.is_recomputing())

    def test_it_recomputes_once_and_stops_early(self):
        runs, before = [], ferry.checkpoint_statistics()

        def function(x, scale, *, shift):
            runs.append(torch.is_grad_enabled())
            y = (x * scale).sin() + shift
            z = y.exp()
            runs.append("end")
            return z.sum(), "what else it returns"
        x = leaf()
        loss, other = ferry.checkpoint(function, x, 2.0, shift=torch.ones(4096))
        self.assertEqual(other, "what else it returns")
        loss.backward()
        self.assertEqual(runs, [True, "end", True])  # exp saves what it makes: there it stops
        want = leaf()
        function(want, 2.0, shift=torch.ones(4096))[0].backward()
        self.assertTrue(torch.equal(x.grad, want.grad))
        after = ferry.checkpoint_statistics()
        self.assertEqual((after.segments - before.segments, after.recomputes - before.recomputes),
                         (1, 1))
        self.assertEqual(after.alive, 0)

    def test_an_early_stop_passes_through_the_users_handlers(self):
        ends = []

        def function(x):
            try:
                y = x.sin().exp()
            except Exception:  # not for the end of a recompute
                ends.append("caught")
                raise
            finally:
                ends.append("finally")
            ends.append("end")
            return y * 3
        before = ferry.checkpoint_statistics().stopped_early
        ferry.checkpoint(function, leaf()).sum().backward()
        self.assertEqual(ferry.checkpoint_statistics().stopped_early - before, 1)
        self.assertNotIn("caught", ends)
        ends.clear()
        ferry.checkpoint(function, leaf(), early_stop=False).sum().backward()
        self.assertEqual(ends, ["finally", "end"] * 2)

    def test_nested_and_second_derivatives(self):
        def inner(x):
            return x.sin().exp()

        def outer(x, checkpoint):
            return checkpoint(inner, checkpoint(inner, x).cos()).sin()

        def second(run):
            x = leaf()
            first, = torch.autograd.grad(run(x).sum(), x, create_graph=True)
            return torch.autograd.grad(first.pow(2).sum(), x)[0]
        want = second(lambda x: outer(x, lambda f, y: f(y)))
        got = second(lambda x: ferry.checkpoint(outer, x, ferry.checkpoint))
        self.assertTrue(torch.equal(want, got))

    def test_reentrant_returns_what_the_function_does(self):
        x = leaf()
        pair = ferry.checkpoint(lambda y: (y.sin(), 5, y.cos()), x, use_reentrant=True)
        self.assertEqual(pair[1], 5)
        (pair[0] + pair[2]).sum().backward()
        self.assertTrue(torch.equal(x.grad, leaf().cos() - leaf().sin()))


class Errors(unittest.TestCase):
    def test_a_recompute_that_saves_other_tensors(self):
        calls = []

        def function(x):
            calls.append(1)
            return x.sin() if len(calls) == 1 else x * 2.0
        loss = ferry.checkpoint(function, leaf()).sum()
        with self.assertRaisesRegex(ferry.CheckpointError, "different number of tensors"):
            loss.backward()
        self.assertTrue(issubclass(ferry.CheckpointError, pytorch.CheckpointError))

    def test_what_the_function_raises_in_forward_and_again(self):
        calls = []

        def function(x):
            calls.append(1)
            y = x.sin().exp()
            if len(calls) > fine:
                raise KeyError("the user's own")
            return y.cos()
        for fine in (0, 1):
            calls.clear()
            with self.assertRaisesRegex(KeyError, "the user's own"):
                ferry.checkpoint(function, leaf()).sum().backward()
        self.assertEqual(ferry.checkpoint_statistics().alive, 0)

    def test_hooks_that_the_function_leaves_open(self):
        opened = []

        def function(x):
            opened.append(torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t))
            opened[-1].__enter__()
            return x.sin()
        with self.assertRaisesRegex(RuntimeError, "hooks open that it opened"):
            ferry.checkpoint(function, leaf())
        with self.assertRaisesRegex(RuntimeError, "empty"):
            torch._C._autograd._pop_saved_tensors_default_hooks()

    def test_options_that_contradict_each_other(self):
        for options, text in (({"determinism_check": "some"}, "determinism_check: expected"),
                              ({"policy": {"aten::mm": "hold"}}, "policy: expected"),
                              ({"policy": ["aten::nothing"]}, "aten::nothing"),
                              ({"use_reentrant": True, "debug": True}, "only supported when")):
            with self.subTest(options=options), self.assertRaisesRegex(ValueError, text):
                ferry.checkpoint(torch.sin, leaf(), **options)


class Together(unittest.TestCase):
    """With offloading, and with Python's hooks around."""

    def test_inputs_are_offloaded_under_a_guard(self):
        model, x = mlp()
        offload = ferry.offload(window=0)
        want = step(model, x, contextlib.nullcontext())
        self.assertTrue(same(want, step(in_segments(model, ferry.checkpoint), x, offload)))
        self.assertEqual(offload.statistics().packs, 5)
        self.assertTrue(offload.empty())

    def test_policies_by_name_and_by_function(self):
        model, x = mlp()
        want = step(model, x, contextlib.nullcontext())
        for policy, offloaded in (({"aten::addmm": "offload"}, 4), (["aten::addmm"], 0),
                                  ([torch.ops.aten.addmm.default], 0),
                                  (lambda op, index: "offload" if op == "aten::addmm" and index == 0
                                   else "recompute", 4)):
            before = ferry.checkpoint_statistics().recomputes
            with self.subTest(policy=policy):
                offload = ferry.offload(window=0)
                run = in_segments(model, ferry.checkpoint, policy=policy)
                self.assertTrue(same(want, step(run, x, offload)))
                self.assertEqual(offload.statistics().packs, 5 + offloaded)
                self.assertEqual(ferry.checkpoint_statistics().recomputes - before, 4)

    def test_pytorchs_selective_contexts(self):
        model, x = mlp()
        want = step(model, x, contextlib.nullcontext())

        def contexts():
            return pytorch.create_selective_checkpoint_contexts([torch.ops.aten.addmm.default])
        run = in_segments(model, ferry.checkpoint, context_fn=contexts)
        self.assertTrue(same(want, step(run, x, contextlib.nullcontext())))

    def test_pythons_hooks_around_see_the_inputs_and_what_is_offloaded(self):
        packed = []

        def pack(tensor):
            packed.append(tensor.shape)
            return tensor.detach()
        x = leaf()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = ferry.checkpoint(lambda t: t.sin().exp(), x, policy={"aten::exp": "offload"})
        y.sum().backward()
        want = leaf()
        want.sin().exp().sum().backward()
        self.assertTrue(torch.equal(x.grad, want.grad))
        self.assertEqual(len(packed), 2)

    def test_pytorchs_checkpoint_within_and_around(self):
        def inner(x):
            return x.sin().exp()
        want = leaf()
        inner(inner(want)).sum().backward()
        for one, other in ((ferry.checkpoint, pytorch.checkpoint),
                           (pytorch.checkpoint, ferry.checkpoint)):
            x = leaf()

            def outer(y):
                return other(inner, inner(y), use_reentrant=False)
            one(outer, x, use_reentrant=False).sum().backward()
            self.assertTrue(torch.equal(x.grad, want.grad))


if __name__ == "__main__":
    unittest.main()
