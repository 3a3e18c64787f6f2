"""Backwards of every kind: the same bits, their ends known, and nothing left."""

import contextlib
import threading
import time
import unittest

from native.support import ferry, mlp, same, step, torch


def leaf(scale=1.0):
    return (torch.linspace(-1, 1, 4096) * scale).requires_grad_()


class Cube(torch.autograd.Function):
    """Saves its input with the interpreter's lock held, and asks for it with it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * 3 * x * x


class Nested(torch.autograd.Function):
    """Its backward runs another."""

    @staticmethod
    def forward(ctx, x, offload, fail):
        ctx.save_for_backward(x)
        ctx.offload, ctx.fail = offload, fail
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad(), ctx.offload:
            x = ctx.saved_tensors[0].detach().requires_grad_()
            y = x.exp().sin().sum()
            if ctx.fail:
                y.register_hook(fail)
        try:
            y.backward()
        except ValueError:
            return gradient, None, None
        return gradient * x.grad, None, None


def fail(gradient):
    raise ValueError("as it was told to")


class Kinds(unittest.TestCase):
    def setUp(self):
        self.offload = ferry.offload(window=0, prefetch="64KiB")

    def tearDown(self):
        self.assertTrue(self.offload.empty())
        self.assertGreater(self.offload.statistics().offloaded_count, 0)

    def test_retained_twice(self):
        x = leaf()
        with self.offload:
            loss = x.exp().sin().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        want = leaf()
        want.exp().sin().sum().backward()
        self.assertTrue(torch.equal(x.grad, want.grad * 2))

    def test_grad_of_grad(self):
        def second(guard):
            x = leaf()
            with guard:
                first, = torch.autograd.grad(x.exp().sin().sum(), x, create_graph=True)
                return torch.autograd.grad(first.pow(2).sum(), x)
        want = second(contextlib.nullcontext())
        self.assertTrue(same(want, second(self.offload)))

    def test_a_backward_within_a_backward(self):
        x, want = leaf(), leaf()
        with self.offload:
            loss = Nested.apply(x.exp(), self.offload, False).sum()
        loss.backward()
        Nested.apply(want.exp(), contextlib.nullcontext(), False).sum().backward()
        self.assertTrue(torch.equal(x.grad, want.grad))

    def test_one_within_that_fails_and_is_caught(self):
        x = leaf()
        with self.offload:
            loss = Nested.apply(x.exp(), self.offload, True).sum()
        loss.backward()
        self.assertTrue(torch.equal(x.grad, leaf().exp()))

    def test_custom_functions(self):
        x = leaf()
        with self.offload:
            loss = Cube.apply(Cube.apply(x)).sum()
        loss.backward()
        want = leaf()
        Cube.apply(Cube.apply(want)).sum().backward()
        self.assertTrue(torch.equal(x.grad, want.grad))

    def test_a_saved_tensor_outside_of_a_backward(self):
        x = leaf()
        with self.offload:
            y = x.exp().sin()
        self.assertTrue(torch.equal(y.grad_fn._saved_self, x.exp()))
        y.sum().backward()

    def test_a_dropped_graph(self):
        with self.offload:
            loss = leaf().exp().sin().sum()
        self.assertFalse(self.offload.empty())
        del loss

    def test_anomaly_mode(self):
        x = leaf()
        with torch.autograd.set_detect_anomaly(True), self.offload:
            x.exp().sin().sum().backward()
        want = leaf()
        want.exp().sin().sum().backward()
        self.assertTrue(torch.equal(x.grad, want.grad))

    def test_autocast(self):
        model, x = mlp()

        def under_autocast(y):
            with torch.autocast("cpu", torch.bfloat16):
                return model(y)
        under_autocast.parameters = model.parameters
        want = step(under_autocast, x, contextlib.nullcontext())
        self.assertTrue(same(want, step(under_autocast, x, self.offload)))

    def test_the_profiler_in_any_nesting(self):
        def profile():
            return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        x = leaf()
        profiler = profile()
        profiler.__enter__()
        self.offload.__enter__()
        profiler.__exit__(None, None, None)
        x.exp().sin().sum().backward()
        profiler = profile()
        profiler.__enter__()
        self.offload.__exit__(None, None, None)
        profiler.__exit__(None, None, None)

    def test_a_pythons_thread_frees_what_the_workers_hold(self):
        # The workers drop the last reference to a tensor that Python has seen: that takes the
        # interpreter's lock, which nobody may hold who waits for them.
        for _ in range(20):
            x = leaf()
            with self.offload:
                kept = [x * i for i in range(8)]
                loss = sum(Cube.apply(y).sum() for y in kept)
                del kept
            loss.backward()


class Threads(unittest.TestCase):
    def each(self, work, count=4):
        errors = []

        def guarded(i):
            try:
                work(i)
            except Exception as error:  # a thread's exception is nobody's
                errors.append(error)
        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_an_offload_each_and_one_for_all(self):
        shared = ferry.offload(window=0)

        def work(i):
            own = ferry.offload(window="8KiB")
            for offload in (own, shared) * 10:
                x, want = leaf(i + 1), leaf(i + 1)
                with offload:
                    loss = x.exp().sin().cos().sum()
                loss.backward()
                want.exp().sin().cos().sum().backward()
                assert torch.equal(x.grad, want.grad)
            assert own.empty()
        self.each(work)
        self.assertTrue(shared.empty())

    def test_backwards_of_many_threads_through_one_graph(self):
        offload, x = ferry.offload(window=0), leaf()
        with offload:
            loss = x.exp().sin().cos().sum()
        want = leaf()
        want.exp().sin().cos().sum().backward()

        def work(_):
            for _ in range(10):
                gradient, = torch.autograd.grad(loss, x, retain_graph=True)
                assert torch.equal(gradient, want.grad)
        self.each(work)
        del loss
        self.assertTrue(offload.empty())

    def test_reentrant_backwards_deeper_than_a_thread_goes(self):
        from torch.utils.checkpoint import checkpoint
        offload = ferry.offload(window=0)

        def nest(x, depth):
            if depth == 0:
                return x.sin()
            return checkpoint(nest, x * 1.0, depth - 1, use_reentrant=True)
        x = leaf()
        with offload:
            nest(x, 70).sum().backward()
        self.assertTrue(torch.equal(x.grad, leaf().cos()))
        # The deepest ran on threads of LibTorch's, which let go of a task after its caller went on.
        while not offload.empty():
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
