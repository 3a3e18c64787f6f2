"""torch.compile and compiled autograd under a guard: the same bits, and what is offloaded."""

import contextlib
import shutil
import unittest

from native.support import ferry, mlp, same, step, torch


def leaf():
    return torch.linspace(-1, 1, 4096).requires_grad_()


def chain(x):
    return x.sin().exp().cos()


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def check(self, backend):
        compiled = torch.compile(chain, backend=backend)
        want = leaf()
        compiled(want).sum().backward()
        for around_backward in (False, True):
            x, offload = leaf(), ferry.offload(window=0)
            with offload:
                loss = compiled(x).sum()
                if around_backward:
                    loss.backward()
            if not around_backward:
                loss.backward()
            self.assertTrue(torch.equal(x.grad, want.grad))
            # What the compiled forward saves is offloaded as anything else.
            self.assertGreater(offload.statistics().offloaded_count, 0)
            self.assertTrue(offload.empty())

    def test_aot_eager(self):
        self.check("aot_eager")

    def test_inductor(self):
        if not shutil.which("g++"):
            self.skipTest("g++: inductor compiles with it")
        self.check("inductor")

    def test_what_is_compiled_under_a_guard_does_not_write_what_it_saved(self):
        compiled = torch.compile(chain, backend="aot_eager")
        with ferry.offload(window=0):
            compiled(leaf())
        self.assertFalse(torch._functorch.config.donated_buffer)

    def test_a_guard_within_a_compiled_function_breaks_the_graph_and_runs(self):
        offload = ferry.offload(window=0)

        @torch.compile(backend="aot_eager")
        def function(x):
            y = x.sin()
            with offload:
                y = y.exp().cos()
            return y.sum()
        x, want = leaf(), leaf()
        function(x).backward()
        chain(want).sum().backward()
        self.assertTrue(torch.equal(x.grad, want.grad))
        self.assertTrue(offload.empty())

    def test_compiled_autograd_unpacks_when_it_reads_the_graph(self):
        x, want, offload = leaf(), leaf(), ferry.offload(window=0)
        chain(want).sum().backward()
        with offload:
            loss = chain(x).sum()
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
            loss.backward()
        self.assertTrue(torch.equal(x.grad, want.grad))
        self.assertEqual(offload.statistics().packs, 3)
        del loss
        self.assertTrue(offload.empty())


if __name__ == "__main__":
    unittest.main()
