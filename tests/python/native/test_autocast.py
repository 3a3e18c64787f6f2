"""Checkpoints under autocast have the plain step's bits, whatever autocast has cast before."""

import contextlib
import itertools
import unittest

from native.support import ferry, same, torch

POLICIES = (None, [], ["aten::addmm"], ["aten::gelu"], ["aten::addmm", "aten::_to_copy"],
            {"aten::addmm": "offload", "aten::tanh": "save"})
INNER = (None, {"cache_enabled": True}, {"cache_enabled": False})


def casts(**options):
    return torch.autocast("cpu", torch.bfloat16, **options)


def region(layers, x, inner):
    with contextlib.nullcontext() if inner is None else casts(**inner):
        y = layers[0](x)
        return (y * layers[1](torch.nn.functional.gelu(y))).tanh()


def step(call, shared, outer, inner, cast_before):
    torch.manual_seed(0)
    first = torch.nn.Linear(8, 8)
    layers = torch.nn.ModuleList([first, first if shared else torch.nn.Linear(8, 8)])
    x = torch.randn(4, 8).requires_grad_()
    with contextlib.nullcontext() if outer is None else casts(**outer):
        before = layers[0](x) if cast_before else torch.zeros(())
        y = call(region, layers, x, inner)
        after = layers[1](y if outer is not None else y.float())
        loss = (before + after).float().sum()
    loss.backward()
    return [loss.detach(), x.grad, *(each.grad for each in layers.parameters())]


class Autocast(unittest.TestCase):
    def test_every_policy_with_casts_cached_at_any_time(self):
        compared = 0
        for case in itertools.product((False, True), INNER, INNER, (False, True)):
            want = step(lambda function, *given: function(*given), *case)
            for policy in POLICIES:
                with self.subTest(case=case, policy=policy):
                    options = {} if policy is None else {"policy": policy}

                    def call(function, *given, options=options):
                        return ferry.checkpoint(function, *given, **options)

                    self.assertTrue(same(want, step(call, *case)))
                    compared += 1
        self.assertEqual(compared, 36 * len(POLICIES))


if __name__ == "__main__":
    unittest.main()
