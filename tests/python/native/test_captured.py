"""A capture takes down calls of ferry.checkpoint: they are the segments of its program."""

import unittest

from native.support import ferry, torch
from torch import nn
from torch_ferry import capture


class Twice(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.options = options

    def forward(self, x):
        y = ferry.checkpoint(lambda y: self.first(y).sin(), x, **self.options)
        return ferry.checkpoint(lambda y, *, scale: self.second(y).cos() * scale, y, scale=y.exp())


def captured(module):
    return capture.capture(module, (torch.zeros(2, 4),), lambda y: y.sum(), name="twice")


class Captured(unittest.TestCase):
    def test_each_call_has_its_tensor_arguments_in_order_and_their_edges(self):
        statements = captured(Twice()).codes[1].statements
        calls = [line for line in statements if "checkpoint" in line.get("enter", "")]
        self.assertEqual(["checkpoint.0", "checkpoint.1"], [call["enter"] for call in calls])
        # The input is global 2; no edge leads there.
        self.assertEqual([2], calls[0]["arguments"])
        by_op = {line["op"]: line["out"][0]["slot"] for line in statements if "op" in line}
        by_node = {line["node"]: line["out"] for line in statements if "node" in line}
        self.assertEqual([by_op["aten.sin"], by_op["aten.exp"],
                          *by_node["SinBackward0"], *by_node["ExpBackward0"]],
                         calls[1]["arguments"])

    def test_what_is_in_a_call_is_between_its_lines(self):
        lines = captured(Twice()).codes[1].statements
        begin, end = ({"enter": "checkpoint.0", "arguments": [2]}, {"leave": "checkpoint.0"})
        inside = lines[lines.index(begin):lines.index(end)]
        self.assertEqual(["aten.mm", "aten.sin"], [line["op"] for line in inside if "op" in line])
        self.assertEqual(1, sum(line.get("enter") == "first" for line in inside))

    def test_without_gradients_it_is_no_segment(self):
        module = Twice()
        module.forward = torch.no_grad()(module.forward)
        program = captured(nn.Sequential(module, nn.Linear(4, 4)))
        self.assertFalse([line for code in program.codes for line in code.statements
                          if "checkpoint" in line.get("enter", "")])

    def test_a_reentrant_one_is_a_segment_and_the_next_call_is_an_ordinary_one(self):
        program = captured(Twice(use_reentrant=True))
        self.assertTrue([line for code in program.codes for line in code.statements
                         if "checkpoint" in line.get("enter", "")])
        before = ferry.checkpoint_statistics().recomputes
        Twice()(torch.ones(2, 4, requires_grad=True)).sum().backward()
        self.assertEqual(2, ferry.checkpoint_statistics().recomputes - before)


if __name__ == "__main__":
    unittest.main()
