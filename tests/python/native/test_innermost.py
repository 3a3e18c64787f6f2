"""Between Python's pairs of hooks and Ferry's guards the innermost wins, in any nesting."""

import contextlib
import unittest

from native.support import ferry, gpt2, mlp, same, step, torch

from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


class Counting:
    """A pair of Python's that counts."""

    def __init__(self):
        self.packs = self.unpacks = 0

    def hooks(self):
        return saved_tensors_hooks(self.pack, self.unpack)

    def pack(self, tensor):
        self.packs += 1
        return tensor.detach()

    def unpack(self, packed):
        self.unpacks += 1
        return packed


def leaf():
    return torch.linspace(-1, 1, 4096).requires_grad_()


class Nesting(unittest.TestCase):
    def run_in(self, *guards):
        """The gradient of three sines, the last saved under all the guards."""
        x = leaf()
        with contextlib.ExitStack() as stack:
            for guard in guards:
                stack.enter_context(guard)
            loss = x.sin().sum()
        loss.backward()
        self.assertTrue(torch.equal(x.grad, leaf().cos()))

    def test_ours_within_pythons(self):
        python, offload = Counting(), ferry.offload(window=0)
        self.run_in(python.hooks(), offload)
        self.assertEqual((python.packs, offload.statistics().packs), (0, 1))

    def test_pythons_within_ours(self):
        python, offload = Counting(), ferry.offload(window=0)
        self.run_in(offload, python.hooks())
        self.assertEqual((python.packs, python.unpacks, offload.statistics().packs), (1, 1, 0))

    def test_save_on_cpu_within_and_around(self):
        offload = ferry.offload(window=0)
        self.run_in(offload, save_on_cpu())
        self.assertEqual(offload.statistics().packs, 0)
        self.run_in(save_on_cpu(), offload)
        self.assertEqual(offload.statistics().packs, 1)

    def test_layers_of_both_and_what_is_around_comes_back(self):
        python, offload, inner = Counting(), ferry.offload(window=0), ferry.offload(window=0)
        x = leaf()
        with python.hooks():
            with offload:
                with python.hooks():
                    with inner:
                        a = x.sin()
                    b = a.sin()
                c = b.sin()
            loss = c.sin().sum()
        loss.backward()
        self.assertEqual((python.packs, offload.statistics().packs, inner.statistics().packs),
                         (2, 1, 1))

    def test_no_offload_hides_pythons_pairs_as_well(self):
        python = Counting()
        self.run_in(python.hooks(), ferry.no_offload())
        self.assertEqual(python.packs, 0)

    def test_a_pair_can_be_called_as_pythons_are(self):
        # Who reads the stack from Python, and calls what it finds, gets what autograd would.
        x = leaf()
        with ferry.offload(window=0) as offload:
            pack, unpack = torch._C._autograd._top_saved_tensors_default_hooks(True)
            packed = pack(x.detach())
        self.assertEqual(offload.statistics().packs, 1)
        self.assertTrue(torch.equal(unpack(packed), leaf()))
        with self.assertRaisesRegex(TypeError, "expected a tensor to pack"):
            pack("x")


class Checkpoints(unittest.TestCase):
    """torch.utils.checkpoint within and around."""

    def run_with(self, guard, use_reentrant, around_backward=False):
        model, x = mlp()
        x = x.requires_grad_()

        def checkpointed(y):
            for i in range(0, len(model), 3):
                y = checkpoint(model[i:i + 3], y, use_reentrant=use_reentrant)
            return y
        checkpointed.parameters = model.parameters
        return step(checkpointed, x, guard, around_backward)

    def test_ours_around_sees_the_inputs_alone(self):
        # Four segments, and the loss's power. Before 2.12 the one variant saves a tensor of its own
        # as well.
        own = 0 if torch.__version__ >= "2.12" else 1
        for use_reentrant, packs in ((False, 4 * (1 + own) + 1), (True, 4 + 1)):
            offload = ferry.offload(window=0)
            want = self.run_with(contextlib.nullcontext(), use_reentrant)
            self.assertTrue(same(want, self.run_with(offload, use_reentrant)))
            self.assertEqual(offload.statistics().packs, packs)
            self.assertTrue(offload.empty())

    def test_ours_around_backward_too_offloads_what_a_reentrant_recompute_saves(self):
        offload = ferry.offload(window=0)
        want = self.run_with(contextlib.nullcontext(), True)
        self.assertTrue(same(want, self.run_with(offload, True, around_backward=True)))
        self.assertGreater(offload.statistics().packs, 5)
        self.assertTrue(offload.empty())

    def test_ours_within_hides_the_checkpoint(self):
        offload, runs, x = ferry.offload(window=0), [], leaf()

        def function(y):
            runs.append(1)
            with offload:
                return y.sin()
        checkpoint(function, x, use_reentrant=False).sum().backward()
        self.assertEqual((len(runs), offload.statistics().packs), (1, 1))
        self.assertTrue(torch.equal(x.grad, leaf().cos()))

    def test_gradient_checkpointing_of_a_transformer(self):
        for use_reentrant in (False, True):
            loss_of, tokens = gpt2()
            model = loss_of.parameters.__self__
            model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
            model.enable_input_require_grads()
            model.train()
            want = step(loss_of, tokens, contextlib.nullcontext())
            offload = ferry.offload(window=0)
            self.assertTrue(same(want, step(loss_of, tokens, offload)))
            self.assertTrue(offload.empty())


class Order(unittest.TestCase):
    """Guards that are closed in another order raise, and are closed; nothing aborts."""

    def test_ours_closed_under_pythons(self):
        python, offload = Counting(), ferry.offload(window=0)
        hooks = python.hooks()
        offload.__enter__()
        hooks.__enter__()
        with self.assertRaisesRegex(RuntimeError, "reverse order"):
            offload.__exit__(None, None, None)
        leaf().sin()
        self.assertEqual((python.packs, offload.statistics().packs), (1, 0))
        hooks.__exit__()
        leaf().sin()
        self.assertEqual((python.packs, offload.statistics().packs), (1, 0))

    def test_ours_closed_under_ours(self):
        one, other = ferry.offload(window=0), ferry.offload(window=0)
        one.__enter__()
        other.__enter__()
        with self.assertRaisesRegex(RuntimeError, "reverse order"):
            one.__exit__(None, None, None)
        leaf().sin()
        other.__exit__(None, None, None)
        leaf().sin()
        self.assertEqual((one.statistics().packs, other.statistics().packs), (0, 1))

    def test_ours_popped_by_pythons(self):
        python, offload = Counting(), ferry.offload(window=0)
        hooks = python.hooks()
        hooks.__enter__()
        offload.__enter__()
        hooks.__exit__()  # Python pops whatever is on top
        with self.assertRaisesRegex(RuntimeError, "closed by somebody else"):
            offload.__exit__(None, None, None)
        torch._C._autograd._pop_saved_tensors_default_hooks()
        leaf().sin()
        self.assertEqual((python.packs, offload.statistics().packs), (0, 0))

    def test_twice_and_on_another_thread(self):
        import threading
        offload, errors = ferry.offload(), []
        with self.assertRaisesRegex(RuntimeError, "not open on the thread"):
            offload.__exit__(None, None, None)

        def close():
            try:
                offload.__exit__(None, None, None)
            except RuntimeError as error:
                errors.append(str(error))
        with offload:
            thread = threading.Thread(target=close)
            thread.start()
            thread.join()
        self.assertIn("not open on the thread", errors[0])


class Disabled(unittest.TestCase):
    """Where saved-tensor hooks are not allowed, ours say so as PyTorch's do."""

    def test_a_guard_within_disabled_hooks_raises_the_message(self):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here, please"):
            with self.assertRaisesRegex(RuntimeError, "not here, please"):
                ferry.offload().__enter__()
        x, offload = leaf(), ferry.offload(window=0)
        with offload:
            x.sin().sum().backward()
        self.assertEqual(offload.statistics().packs, 1)

    def test_disabling_within_a_guard_raises(self):
        with ferry.offload(), self.assertRaisesRegex(RuntimeError, "message"):
            with torch.autograd.graph.disable_saved_tensors_hooks("message"):
                pass

    def test_functorch_raises_as_with_pythons(self):
        def gradient():
            return torch.func.grad(lambda x: x.sin().sum())(leaf().detach())
        for guard in (Counting().hooks(), ferry.offload()):
            with guard, self.assertRaisesRegex(RuntimeError, "saved tensor hooks"):
                gradient()
        self.assertTrue(torch.equal(gradient(), leaf().cos()))

    def test_vmap_and_forward_mode_run(self):
        with ferry.offload(window=0):
            x = leaf().detach()
            self.assertTrue(torch.equal(torch.vmap(torch.sin)(x), x.sin()))
            with torch.autograd.forward_ad.dual_level():
                dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
                tangent = torch.autograd.forward_ad.unpack_dual(dual.sin()).tangent
            self.assertTrue(torch.equal(tangent, x.cos()))


if __name__ == "__main__":
    unittest.main()
