"""PyTorch's tests of checkpoints (TestCheckpoint, and those of TestAutograd), with Ferry's
offloading around and with Ferry's checkpoint in the place of PyTorch's (ways.py)."""

import contextlib
import gc
import weakref

from campaign.pytorchs.ways import Test, checkpoints, each, gradient, torch

from torch import nn
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint_sequential

VARIANTS = (False, True)


def leaf(*shape):
    return torch.randn(*(shape or (6, 8)), requires_grad=True)


def layers(count=4, width=8):
    parts = []
    for _ in range(count):
        parts += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*parts)


class Counting(nn.Module):
    """How often it ran."""

    def __init__(self, *inner):
        super().__init__()
        self.inner, self.ran = nn.Sequential(*inner), 0

    def forward(self, *args):
        self.ran += 1
        return self.inner(*args)


def all_gradients(module, x):
    taken = [x.grad, *(parameter.grad for parameter in module.parameters())]
    module.zero_grad(set_to_none=True)
    x.grad = None
    return taken


class Results(Test):
    def compared(self, way, module, x, **options):
        """The gradients are those without; the module's, and its input's."""
        module(x).pow(2).sum().backward()
        want = all_gradients(module, x)
        with way.guard():
            loss = way.checkpoint(module, x, **options).pow(2).sum()
        loss.backward()
        self.assertTrue(all(map(torch.equal, want, all_gradients(module, x))))

    # test_checkpointing_without_reentrant_correct_grad, test_checkpoint
    @each(checkpoints)
    def test_gradients_of_a_module(self, way):
        for variant in VARIANTS:
            self.compared(way, layers(), leaf(), use_reentrant=variant)

    # test_checkpoint_module_list, test_checkpoint_trigger
    @each(checkpoints)
    def test_a_list_of_modules_each_runs_twice(self, way):
        for variant in VARIANTS:
            parts = nn.ModuleList(Counting(nn.Linear(8, 8), nn.Tanh()) for _ in range(3))
            x = leaf()
            with way.guard():
                y = x
                for part in parts:
                    y = way.checkpoint(part, y, use_reentrant=variant)
            self.assertEqual([1, 1, 1], [part.ran for part in parts])
            y.sum().backward()
            self.assertEqual([2, 2, 2], [part.ran for part in parts])
            way_gradients = all_gradients(parts, x)
            y = x
            for part in parts:
                y = part(y)
            y.sum().backward()
            self.assertTrue(all(map(torch.equal, way_gradients, all_gradients(parts, x))))

    # test_checkpoint_sequential: PyTorch's own, in a guard
    @each(checkpoints)
    def test_checkpoint_sequential(self, way):
        for variant in VARIANTS:
            module, x = layers(), leaf()
            module(x).sum().backward()
            want = all_gradients(module, x)
            with way.guard():
                loss = checkpoint_sequential(module, 2, x, use_reentrant=variant).sum()
            loss.backward()
            self.assertTrue(all(map(torch.equal, want, all_gradients(module, x))))

    # test_checkpoint_rng_cpu, test_checkpoint_not_preserve_rng_state_and_without_reentrant
    @each(checkpoints)
    def test_random_numbers_are_the_same_again(self, way):
        def noisy(x):
            mask = torch.rand_like(x)
            masks.append(mask.detach().clone())
            return (x * mask).sin()
        for variant in VARIANTS:
            for preserved in (True, False):
                masks = []
                with way.guard():
                    y = way.checkpoint(noisy, leaf(), use_reentrant=variant,
                                       preserve_rng_state=preserved)
                before = torch.get_rng_state()
                y.sum().backward()
                self.assertEqual(preserved, torch.equal(*masks))
                self.assertEqual(preserved, torch.equal(before, torch.get_rng_state()))

    # test_checkpointing_without_reentrant_arbitrary_input_output, test_checkpoint_non_tensor
    @each(checkpoints)
    def test_arguments_and_results_of_any_kind(self, way):
        class Box:
            def __init__(self, tensor):
                self.tensor = tensor

        def run(box, scale, nothing, *, power):
            self.assertIsNone(nothing)
            return {"out": Box(box["in"].tensor.pow(power) * scale), "name": "box", "n": 3}
        x = leaf()
        with way.guard():
            made = way.checkpoint(run, {"in": Box(x)}, 2.0, None, power=3)
        self.assertEqual(("box", 3), (made["name"], made["n"]))
        got, = gradient(made["out"].tensor, x)
        self.assertTrue(torch.equal(got, gradient(x.pow(3) * 2.0, x)[0]))

    # test_checkpoint_non_tensor_inputs_outputs, test_checkpoint_partial_grad
    @each(checkpoints)
    def test_tuples_of_which_some_have_no_gradient(self, way):
        def run(x, number, other):
            return x * number, number, other + 1, (x + other).detach()
        for variant in VARIANTS:
            x, other = leaf(), torch.randn(6, 8)
            with way.guard():
                y, number, moved, detached = way.checkpoint(run, x, 3, other,
                                                            use_reentrant=variant)
            self.assertEqual(3, number)
            self.assertTrue(torch.equal(moved, other + 1))
            self.assertEqual(variant, detached.requires_grad)  # a node's results all do
            y.sum().backward()
            self.assertTrue(torch.equal(x.grad, torch.full((6, 8), 3.0)))

    # test_checkpointing_without_reentrant_parameter_used_in_an_out
    @each(checkpoints)
    def test_a_parameter_that_is_used_outside_as_well(self, way):
        module, x = nn.Linear(8, 8), leaf()
        (module(x) + x @ module.weight).sum().backward()
        want = all_gradients(module, x)
        with way.guard():
            loss = (way.checkpoint(module, x) + x @ module.weight).sum()
        loss.backward()
        for one, other in zip(want, all_gradients(module, x)):
            self.assertTrue(torch.allclose(one, other))

    # test_checkpointing_without_reentrant_detached_tensor
    @each(checkpoints)
    def test_what_is_detached_within(self, way):
        first, second = nn.Linear(8, 8), nn.Linear(8, 8)

        def run(x):
            return second(first(x).detach()).sigmoid()
        with way.guard():
            y = way.checkpoint(run, leaf())
        y.sum().backward()
        self.assertIsNone(first.weight.grad)
        self.assertIsNotNone(second.weight.grad)

    # test_checkpointing_without_reentrant_input_requires_grad_{True,False}
    @each(checkpoints)
    def test_an_input_with_and_without_a_gradient(self, way):
        for required in (True, False):
            module, x = layers(2), torch.randn(6, 8, requires_grad=required)
            with way.guard():
                loss = way.checkpoint(module, x).sum()
            loss.backward()
            self.assertEqual(required, x.grad is not None)
            self.assertTrue(all(p.grad is not None for p in module.parameters()))

    # test_checkpoint_no_tensors, test_checkpoint_valid
    @each(checkpoints)
    def test_what_has_no_gradient_is_not_kept(self, way):
        module = Counting(nn.Linear(8, 8))
        with way.guard(), torch.no_grad():
            y = way.checkpoint(module, torch.randn(2, 8))
        self.assertFalse(y.requires_grad)
        self.assertEqual(5, way.checkpoint(lambda: 5))
        self.assertEqual(1, module.ran)

    # test_checkpointing_without_reentrant_custom_function_works
    @each(checkpoints)
    def test_custom_functions(self, way):
        class Product(Function):
            @staticmethod
            def forward(ctx, x, y, z):
                ctx.save_for_backward(x * y, y * z)
                ctx.scale = 2
                return x * y * z

            @staticmethod
            def backward(ctx, grad):
                xy, yz = ctx.saved_tensors
                self.assertEqual(2, ctx.scale)
                return grad * yz, None, grad * xy
        x, y, z = leaf(), torch.randn(6, 8), leaf()
        with way.guard():
            out = way.checkpoint(Product.apply, x, y, z)
        got = gradient(out, x, z)
        self.assertTrue(torch.equal(got[0], y * z) and torch.equal(got[1], x * y))

    # test_save_on_cpu_and_checkpoint
    @each(checkpoints)
    def test_save_on_cpu_around_and_within(self, way):
        x = leaf(4, 5)
        want, = gradient(x.pow(2).pow(2).pow(2), x)

        def within(y):
            with torch.autograd.graph.save_on_cpu():
                return y.pow(2)
        for function, around in ((lambda y: y.pow(2), torch.autograd.graph.save_on_cpu()),
                                 (within, contextlib.nullcontext())):
            with way.guard(), around:
                y = way.checkpoint(function, x.pow(2)).pow(2)
            self.assertTrue(torch.equal(want, gradient(y, x)[0]))

    # test_checkpoint_sequential and autocast: the recompute has the forward's
    @each(checkpoints)
    def test_autocast_is_the_forwards(self, way):
        kinds = []

        def run(module, x):
            y = module(x)
            kinds.append(y.dtype)
            return y.sin()
        for variant in VARIANTS:
            kinds.clear()
            with way.guard(), torch.autocast("cpu", torch.bfloat16):
                y = way.checkpoint(run, layers(1), leaf(), use_reentrant=variant)
            y.float().sum().backward()
            self.assertEqual([torch.bfloat16] * 2, kinds)


class Memory(Test):
    # test_checkpointing_without_reentrant_early_free
    @each(checkpoints)
    def test_what_is_recomputed_goes_as_it_is_used(self, way):
        alive, most = weakref.WeakSet(), []

        class Squared(Function):
            @staticmethod
            def forward(ctx, x):
                kept = torch.empty_like(x).copy_(x)
                ctx.save_for_backward(kept)
                alive.add(ctx)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                most.append(len(alive))
                return 2 * ctx.saved_tensors[0] * grad
        x = leaf()
        with way.guard():
            y = x
            for _ in range(3):
                y = way.checkpoint(lambda y: Squared.apply(Squared.apply(y)), y)
        y.sum().backward()
        self.assertEqual(6, len(most))
        del y
        gc.collect()
        self.assertEqual(0, len(alive))

    # test_checkpointing_without_reentrant_memory_savings, in tensors
    @each(checkpoints)
    def test_forward_keeps_the_inputs_alone(self, way):
        made = []

        def run(x):
            for _ in range(4):
                x = x.sin()
                made.append(weakref.ref(x))
            return x
        with way.guard():
            y = way.checkpoint(run, leaf())
        self.assertEqual([False] * 3, [ref() is not None for ref in made[:3]])
        y.sum().backward()

    # test_checkpointing_without_reentrant_saved_object_identity
    @each(checkpoints)
    def test_what_was_never_dropped_is_the_same_object(self, way):
        seen = []

        def run(x, kept):
            seen.append(kept)
            return x * kept
        x, kept = leaf(), torch.randn(6, 8)
        with way.guard():
            y = way.checkpoint(run, x, kept)
        gradient(y, x)
        self.assertIs(seen[0], kept)
        self.assertEqual(kept.data_ptr() if not way.offloads else seen[1].data_ptr(),
                         seen[1].data_ptr())


class Refused(Test):
    # test_checkpoint_detects_non_determinism
    @each(checkpoints)
    def test_a_recompute_that_differs(self, way):
        def other_count(x):
            ran.append(1)
            return x.sin().sin() if len(ran) == 1 else x.sin()

        def other_shape(x):
            ran.append(1)
            return (x.exp() if len(ran) == 1 else x[:3].exp()).sin().sum()
        for function in (other_count, other_shape):
            ran = []
            with way.guard():
                y = way.checkpoint(function, leaf())
            with self.assertRaisesRegex(RuntimeError, "recomput"):
                y.sum().backward()

    # test_checkpoint_valid_reset_on_error
    @each(checkpoints)
    def test_autograd_grad_through_the_reentrant_one(self, way):
        x = leaf()
        for _ in range(2):
            with way.guard():
                y = way.checkpoint(torch.exp, x, use_reentrant=True).sum()
            with self.assertRaisesRegex(RuntimeError, r"incompatible with .grad\(\)"):
                torch.autograd.grad(y, x)
            y.backward()  # it is not left in that state
        self.assertTrue(torch.allclose(x.grad, 2 * x.exp()))

    # What a function raises in its recompute is what backward raises; the next step works.
    @each(checkpoints)
    def test_errors_of_the_recompute(self, way):
        class Custom(Exception):
            pass

        def run(x):
            ran.append(1)
            if len(ran) == 2:
                raise Custom
            return x.sin()
        for variant in VARIANTS:
            ran, x = [], leaf()
            with way.guard():
                y = way.checkpoint(run, x, use_reentrant=variant)
            with self.assertRaises(Custom):
                y.sum().backward()
            del y
            gc.collect()
            with way.guard():
                y = way.checkpoint(run, x, use_reentrant=variant)
            y.sum().backward()
            self.assertTrue(torch.allclose(x.grad, x.cos()))

    # Backwards that are in no group together recompute each (with one: native/test_checkpoint.py).
    @each(checkpoints)
    def test_two_backwards_through_one_checkpoint(self, way):
        module, x = Counting(nn.Linear(8, 8), nn.Tanh()), leaf()
        with way.guard():
            y = way.checkpoint(module, x)
        first, = torch.autograd.grad(y.sum(), x, retain_graph=True)
        second, = torch.autograd.grad(y.sum(), x)
        self.assertEqual(3, module.ran)
        self.assertTrue(torch.equal(first, second))
