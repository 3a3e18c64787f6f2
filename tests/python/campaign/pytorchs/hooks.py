"""PyTorch's tests of saved-tensor hooks, with Ferry's around (ways.py)."""

import contextlib
import pathlib
import tempfile

from campaign.pytorchs.ways import Test, each, gradient, hooks, torch

from torch.autograd import Function
from torch.autograd.graph import (disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks)


class Counted:
    """A pair of hooks that counts its calls."""

    def __init__(self, pack=lambda x: x, unpack=lambda x: x):
        self.packs = self.unpacks = 0
        self._pack, self._unpack = pack, unpack

    def pack(self, tensor):
        self.packs += 1
        return self._pack(tensor)

    def unpack(self, packed):
        self.unpacks += 1
        return self._unpack(packed)

    def hooks(self):
        return saved_tensors_hooks(self.pack, self.unpack)


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


class Packing(Test):
    # test_saved_variable_packing_unpacking_saved_original_with_hooks
    @each(hooks)
    def test_hooks_of_one_saved_tensor(self, way):
        x = leaf()
        with way.guard():
            y = x * x
        saved = y.grad_fn._raw_saved_self
        if not way.offloads:
            saved.register_hooks(lambda t: 2 * t, lambda t: t / 2)
            self.assertTrue(torch.equal(gradient(y, x)[0], 2 * x))
            return
        with self.assertRaisesRegex(RuntimeError, "already been set"):  # as with default hooks
            saved.register_hooks(lambda t: t, lambda t: t)
        self.assertTrue(torch.equal(gradient(y, x)[0], 2 * x))

    # test_saved_variable_packing_unpacking_saved_original_with_default_hooks
    @each(hooks)
    def test_inputs_that_are_saved(self, way):
        pair = Counted(lambda t: 2 * t, lambda t: t / 2)
        x = leaf()
        with way.guard(), pair.hooks():
            y = x.pow(2)
        self.assertTrue(torch.equal(y.grad_fn._saved_self, x))
        self.assertTrue(torch.equal(gradient(y, x)[0], 2 * x))
        self.assertEqual(1, pair.packs)

    # test_saved_variable_packing_unpacking_did_not_save_original_with_default_hooks
    @each(hooks)
    def test_results_that_are_saved(self, way):
        pair = Counted(lambda t: t + 1, lambda t: t - 1)
        x = leaf(1.0, 2.0)
        with way.guard(), pair.hooks():
            y = (x * 1).sigmoid()
            z = y.sqrt()
        self.assertTrue(torch.allclose(z.grad_fn._saved_result, z))
        want = gradient((x * 1).sigmoid().sqrt(), x)[0]
        self.assertTrue(torch.allclose(gradient(z, x)[0], want))

    # test_setting_default_saved_variable_hooks_twice_should_use_inner
    @each(hooks)
    def test_of_two_pairs_the_inner_one_is_used(self, way):
        outer, inner = Counted(), Counted()
        x = leaf()
        with way.guard(), outer.hooks():
            with inner.hooks():
                y = x * x
            self.assertEqual((0, 2), (outer.packs, inner.packs))
            z = y * y
        self.assertEqual((2, 2), (outer.packs, inner.packs))
        self.assertTrue(torch.equal(gradient(z, x)[0], 4 * x.pow(3)))
        self.assertEqual((2, 2), (outer.unpacks, inner.unpacks))

    # test_unpack_hooks_exec_count
    @each(hooks)
    def test_each_look_unpacks(self, way):
        pair = Counted()
        x, y = leaf(), leaf(4.0, 5.0, 6.0)
        with way.guard(), pair.hooks():
            z = x * y
        self.assertEqual((2, 0), (pair.packs, pair.unpacks))
        z.sum().backward(retain_graph=True)
        self.assertEqual(2, pair.unpacks)
        z.grad_fn._saved_self, z.grad_fn._saved_other
        self.assertEqual(4, pair.unpacks)
        self.assertTrue(torch.equal(x.grad, y) and torch.equal(y.grad, x))

    # test_default_saved_tensors_hooks_double_backward
    @each(hooks)
    def test_second_derivatives(self, way):
        def second(guard):
            x = leaf()
            with guard:
                first, = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
            return torch.autograd.grad(first.sum(), x)[0], 6 * x
        pair = Counted()
        for inner in (pair.hooks(), contextlib.nullcontext()):
            with way.guard():
                got, want = second(inner)
            self.assertTrue(torch.equal(got, want))
        self.assertGreaterEqual(pair.packs, 3)

    # test_wrapped_number_saved_tensors_hooks
    @each(hooks)
    def test_a_number_stays_a_number(self, way):
        x = torch.tensor(1.5, requires_grad=True)
        pair = Counted()
        for inner in (pair.hooks(), contextlib.nullcontext()):
            with way.guard(), inner:
                y = x * 2.5
                z = torch.tensor([3], dtype=torch.int16) * x
            self.assertEqual(torch.float32, y.dtype)
            grad, = gradient(y, x)
            self.assertEqual((2.5, torch.float32), (grad.item(), grad.dtype))
            self.assertEqual(3, gradient(z, x)[0].item())

    # test_graph_save_on_cpu
    @each(hooks)
    def test_save_on_cpu(self, way):
        x, w = torch.randn(4, 5, requires_grad=True), torch.randn(5, 3, requires_grad=True)
        want = gradient((x @ w).relu().exp(), x, w)
        with way.guard(), save_on_cpu():
            y = (x @ w).relu().exp()
        self.assertTrue(all(map(torch.equal, want, gradient(y, x, w))))

    # test_saving_variable_to_disk
    @each(hooks)
    def test_files(self, way):
        with tempfile.TemporaryDirectory() as folder:
            def pack(tensor):
                path = pathlib.Path(folder, str(len(list(pathlib.Path(folder).iterdir()))))
                torch.save(tensor, path)
                return path
            x = leaf()
            with way.guard(), saved_tensors_hooks(pack, torch.load):
                y = x.exp() * x
            want, = gradient(x.exp() * x, x)
            self.assertTrue(torch.equal(gradient(y, x)[0], want))

    # test_saved_tensor_hooks_custom_function_intermediates
    @each(hooks)
    def test_what_a_function_saves_that_nobody_else_has(self, way):
        class Cubed(Function):
            @staticmethod
            def forward(ctx, x):
                square = x * x
                ctx.save_for_backward(x, square)
                return square * x

            @staticmethod
            def backward(ctx, grad):
                x, square = ctx.saved_tensors
                self.assertTrue(torch.equal(square, x * x))
                return 3 * square * grad
        pair = Counted()
        for inner in (pair.hooks(), contextlib.nullcontext()):
            x = leaf()
            with way.guard(), inner:
                y = Cubed.apply(x)
            self.assertTrue(torch.equal(gradient(y, x)[0], 3 * x * x))
        self.assertEqual(2, pair.packs)


class Refused(Test):
    # test_disabling_saved_tensor_hooks, test_disabling_saved_tensor_hooks_nested
    @each(hooks)
    def test_hooks_are_disabled_within(self, way):
        if way.offloads:  # hooks are in force already
            with way.guard():
                with self.assertRaisesRegex(RuntimeError, "outer"):
                    with disable_saved_tensors_hooks("outer"):
                        self.fail("it began")
        with disable_saved_tensors_hooks("outer"):
            with disable_saved_tensors_hooks("inner"):
                with self.assertRaisesRegex(RuntimeError, "inner"):
                    with Counted().hooks():
                        pass
            with self.assertRaisesRegex(RuntimeError, "outer"):
                with Counted().hooks():
                    pass
        self.assertTrue(torch._C._autograd._saved_tensors_hooks_is_enabled())

    # test_saved_tensor_hooks_custom_error_propagation
    @each(hooks)
    def test_errors_of_hooks_are_the_callers(self, way):
        class Custom(Exception):
            pass

        def fail(_):
            raise Custom
        x = leaf()
        with self.assertRaises(Custom):
            with way.guard(), saved_tensors_hooks(fail, lambda t: t):
                x * x
        with way.guard(), saved_tensors_hooks(lambda t: t, fail):
            y = x * x
        with self.assertRaises(Custom):
            gradient(y, x)
        with way.guard():  # the next step works
            y = x * x
        self.assertTrue(torch.equal(gradient(y, x)[0], 2 * x))

    # test_pack_hook_with_inplace_modification_should_fail
    @each(hooks)
    def test_a_pack_hook_that_writes_its_input(self, way):
        def pack(tensor):
            with torch.no_grad():
                return tensor.mul_(2)
        x = leaf()
        for save in (torch.Tensor.sin, torch.Tensor.exp):  # an input, a result
            with self.assertRaisesRegex(RuntimeError, "pack hook is modifying its input in place"):
                with way.guard(), saved_tensors_hooks(pack, lambda t: t):
                    save(x * 1)

    # test_saved_variable_saved_original_inplace_detach
    @each(hooks)
    def test_what_was_saved_is_detached_in_place(self, way):
        def detached(save, guard):
            x = leaf(1.0)
            with guard:
                copied = x.clone()
                saved = save(copied)
                y = saved * 1
                (copied if save is torch.sin else saved).detach_()
            return gradient(y, x)[0]
        self.assertEqual(leaf(1.0).exp(), detached(torch.exp, way.guard()))  # its own result
        with Counted().hooks():  # what hooks have packed is no longer that tensor
            self.assertEqual(leaf(1.0).cos(), detached(torch.sin, contextlib.nullcontext()))
        if way.offloads:
            self.assertEqual(leaf(1.0).cos(), detached(torch.sin, way.guard()))
        else:
            with self.assertRaisesRegex(RuntimeError, "has been detached in-place"):
                detached(torch.sin, way.guard())

    # What is written after it was saved is refused when it is unpacked, not before.
    @each(hooks)
    def test_what_was_saved_is_written(self, way):
        x = leaf()
        with way.guard():
            z = x * 1
            y = z.sin()
            with torch.no_grad():
                z.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            gradient(y, x)

    # test_save_tensor_hook_version_counter_not_shared
    @each(hooks)
    def test_reading_leaves_the_version_alone(self, way):
        class Sine(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.sin()

            @staticmethod
            def backward(ctx, grad):
                before = ctx.saved_tensors[0]._version
                self.assertEqual(before, ctx.saved_tensors[0]._version)
                return grad * ctx.saved_tensors[0].cos()
        for inner in (Counted().hooks(), contextlib.nullcontext()):
            x = leaf()
            with way.guard(), inner:
                y = Sine.apply(x)
            version = x._version
            self.assertTrue(torch.equal(gradient(y, x)[0], x.cos()))
            self.assertEqual(version, x._version)

    # test_saved_variables_deprecated, and those of what was freed
    @each(hooks)
    def test_looking_after_backward(self, way):
        x = leaf()
        with way.guard():
            y = x.pow(2)
        y.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "after they have already been freed"):
            y.grad_fn._saved_self
        with self.assertRaisesRegex(RuntimeError, "second time"):
            y.sum().backward()

    # test_no_unnecessary_save, test_free_unneeded_tensor
    @each(hooks)
    def test_what_no_gradient_needs_is_not_saved(self, way):
        pair = Counted()
        weight, x = leaf(), torch.ones(3)
        with way.guard(), pair.hooks():
            y = weight * x  # of its two inputs x alone is needed
        self.assertEqual(1, pair.packs)
        self.assertTrue(torch.equal(gradient(y, weight)[0], x))

    # test_save_none_for_backward, test_save_output_nr
    @each(hooks)
    def test_functions_that_save_nothing_and_one_of_several_results(self, way):
        class Two(Function):
            @staticmethod
            def forward(ctx, x):
                first, second = x * 2, x * 3
                ctx.save_for_backward(None, first, None, second)
                return first, second

            @staticmethod
            def backward(ctx, one, other):
                none, first, nothing, second = ctx.saved_tensors
                self.assertIsNone(none)
                self.assertIsNone(nothing)
                self.assertEqual((0, 1), (first.output_nr, second.output_nr))
                return one * 2 + other * 3
        x = leaf()
        with way.guard():
            first, second = Two.apply(x)
        self.assertTrue(torch.equal(gradient(first + second, x)[0], torch.full((3,), 5.0)))
