"""A leaf that the step itself makes: frozen weights made it, and `requires_grad_()` was called.

So do PEFT, and transformers, for models whose layers are checkpointed: or the gradient would not
reach the adapters of the layers.
"""

import unittest

from captures import WHY_NOT, body_of, captured, forward_of, module, node_of, saved_of, torch

if torch:
    from torch.utils.checkpoint import checkpoint

FROZEN = (("w", (4, 4)), ("adapter", (4, 4)))


@unittest.skipIf(torch is None, WHY_NOT)
class MadeLeaves(unittest.TestCase):
    def captured(self, forward):
        made = module(forward, *FROZEN)
        made.w.requires_grad_(False)
        return captured(made)

    def test_what_is_computed_of_it_saves_and_has_somewhere_to_send_gradients(self):
        program = self.captured(lambda m, x: (x * m.w).requires_grad_().exp() * m.adapter)
        self.assertEqual(["AccumulateGrad", "ExpBackward0", "MulBackward0", "SumBackward0"],
                         [line["node"] for line in forward_of(program, "node")])
        self.assertEqual(node_of(program, "AccumulateGrad")["out"],
                         node_of(program, "ExpBackward0")["in"])
        self.assertEqual([1], node_of(program, "AccumulateGrad")["in"])  # the adapter's, and
        self.assertEqual([None], body_of(program, "AccumulateGrad").signature["results"])  # nothing
        self.assertEqual(1, len(saved_of(program, "ExpBackward0")))

    def test_it_is_one_however_often_it_is_used(self):
        def forward(m, x):
            leaf = (x * m.w).requires_grad_()
            return leaf * leaf.exp() * m.adapter
        nodes = forward_of(self.captured(forward), "node")
        self.assertEqual(1, sum(line["node"] == "AccumulateGrad" for line in nodes))
        self.assertEqual(list(range(len(nodes))), [line["id"] for line in nodes])

    def test_a_checkpoint_is_given_it_with_its_edge(self):
        def forward(m, x):
            leaf = (x * m.w).requires_grad_()
            return checkpoint(lambda x: x.exp() * m.adapter, leaf, use_reentrant=False)
        program = self.captured(forward)
        enter = next(line for line in forward_of(program, "enter")
                     if line["enter"] == "checkpoint.0")
        self.assertEqual(node_of(program, "AccumulateGrad")["out"], enter["arguments"][1:])


if __name__ == "__main__":
    unittest.main()
