"""PyTorch's tests of selective checkpoints (TestSelectiveActivationCheckpoint), with Ferry's
offloading around and with Ferry's checkpoint in the place of PyTorch's (ways.py)."""

import functools

from campaign.pytorchs.ways import Test, checkpoints, each, gradient, torch

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

aten = torch.ops.aten
SAVE, AGAIN = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE


def saving(*ops):
    def choose(ctx, op, *args, **kwargs):
        return SAVE if op in ops else AGAIN
    return functools.partial(create_selective_checkpoint_contexts, choose)


def listed(*ops):
    return functools.partial(create_selective_checkpoint_contexts, list(ops))


def leaf(*shape):
    return torch.randn(*(shape or (4, 4)), requires_grad=True)


class Ran(TorchDispatchMode):
    """How often each op ran."""

    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func)
        return func(*args, **(kwargs or {}))


class Selective(Test):
    # test_flops_and_mem: what is saved is not computed again
    @each(checkpoints)
    def test_products_run_once_where_they_are_saved(self, way):
        def run(x, w):
            return (x @ w).sin() @ w
        for context, products in ((saving(aten.mm.default), 0), (listed(aten.mm.default), 0),
                                  (saving(), 1)):
            x, w = leaf(), leaf()
            with way.guard():
                y = way.checkpoint(run, x, w, context_fn=context)
            with Ran() as again:
                got = torch.autograd.grad(y.sum(), (x, w))
            # Two products of each gradient of a product; and the first one again, where it is not
            # saved (nothing of the second one's result is needed).
            self.assertEqual(4 + products, again.ops.count(aten.mm.default))
            want = torch.autograd.grad(run(x, w).sum(), (x, w))
            self.assertTrue(all(map(torch.equal, want, got)))

    # test_policy_with_state
    @each(checkpoints)
    def test_a_policy_that_counts(self, way):
        class Alternating:
            def __init__(self):
                self.seen = {False: 0, True: 0}

            def choose(self, ctx, op, *args, **kwargs):
                if op is not aten.sin.default:
                    return AGAIN
                self.seen[ctx.is_recompute] += 1
                return SAVE if self.seen[ctx.is_recompute] % 2 else AGAIN
        policy = Alternating()
        x = leaf()
        with way.guard():
            y = way.checkpoint(lambda t: t.sin().sin().sin().cos(), x,
                               context_fn=lambda: create_selective_checkpoint_contexts(
                                   policy.choose))
        got, = gradient(y, x)
        self.assertEqual({False: 3, True: 3}, policy.seen)
        self.assertTrue(torch.equal(got, gradient(x.sin().sin().sin().cos(), x)[0]))

    # test_function_with_more_than_one_output, test_function_with_non_tensor_output
    @each(checkpoints)
    def test_ops_of_several_results_and_of_none_that_is_a_tensor(self, way):
        def run(x):
            variance, mean = torch.var_mean(x)
            return x.exp() * variance + mean * float(x.size(0))
        x = leaf()
        with way.guard():
            y = way.checkpoint(run, x, context_fn=saving(aten.var_mean.correction))
        self.assertTrue(torch.equal(gradient(y, x)[0], gradient(run(x), x)[0]))

    # test_version_counter
    @each(checkpoints)
    def test_what_was_saved_is_written_in_forward(self, way):
        def run(x):
            return x.sin().sigmoid_().cos().exp()
        x = leaf()
        with way.guard():
            y = way.checkpoint(run, x, context_fn=saving(aten.sin.default))
        with self.assertRaisesRegex(RuntimeError, "has been mutated|version|written"):
            gradient(y, x)
        with way.guard():  # it is the op that is saved that matters
            y = way.checkpoint(run, x, context_fn=saving(aten.cos.default))
        self.assertTrue(torch.allclose(gradient(y, x)[0], gradient(run(x), x)[0]))

    # test_can_only_trigger_recompute_once
    @each(checkpoints)
    def test_a_second_backward_is_refused(self, way):
        x = leaf()
        with way.guard():
            y = way.checkpoint(lambda t: t.sin().cos(), x, context_fn=saving(aten.sin.default))
        torch.autograd.grad(y.sum(), x, retain_graph=True)
        with self.assertRaisesRegex(RuntimeError, "backward an extra time"):
            torch.autograd.grad(y.sum(), x)

    # test_bad_inputs
    @each(checkpoints)
    def test_contexts_that_make_no_sense(self, way):
        for wrong in (3, [3], ["aten::mm"]):
            with self.assertRaises((TypeError, ValueError)):
                with way.guard():
                    way.checkpoint(torch.sin, leaf(), context_fn=functools.partial(
                        create_selective_checkpoint_contexts, wrong))
        with self.assertRaisesRegex(ValueError, "use_reentrant=False"):
            way.checkpoint(torch.sin, leaf(), use_reentrant=True, context_fn=saving())

    # test_output_already_has_autograd_meta
    @each(checkpoints)
    def test_a_view_of_what_was_saved(self, way):
        def run(x):
            return x.view(-1).exp().view(4, 4).sin()
        x = leaf()
        with way.guard():
            y = way.checkpoint(run, x, context_fn=saving(aten.view.default, aten.exp.default))
        self.assertTrue(torch.equal(gradient(y, x)[0], gradient(run(x), x)[0]))

    # test_checkpointing_without_reentrant_with_context_fn
    @each(checkpoints)
    def test_contexts_of_ones_own(self, way):
        for_forward, for_again = Ran(), Ran()
        x = leaf()
        with way.guard():
            y = way.checkpoint(lambda t: t.sin().exp(), x,
                               context_fn=lambda: (for_forward, for_again))
        self.assertEqual([aten.sin.default, aten.exp.default], for_forward.ops)
        self.assertEqual([], for_again.ops)
        gradient(y, x)
        self.assertEqual(aten.sin.default, next(op for op in for_again.ops
                                                if op in (aten.sin.default, aten.exp.default)))
