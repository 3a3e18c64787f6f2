"""What a captured call of an operator costs: for each operator that formats/op_costs.h names, calls
that a seed draws.

costs.jsonl has what they cost, a line for each operator, so that a cost that becomes another one is
seen, and is meant. It also holds the way from a call in Python to C++: which tensors and arguments
are handed on. `python tests/python/drawn_calls.py` writes it anew (PYTHONPATH=python). FLOPs are
told by a second voice as well, PyTorch's own counter.
"""

import json
import re
import unittest

from captures import ROOT, WHY_NOT, is_since, torch

if not WHY_NOT:
    from drawn_calls import CALLS, EACH, RECORD, costs_of, drawn
    from torch.utils.flop_counter import flop_registry
    from torch_ferry.costs import cost
    from torch_ferry.op_call import arguments_of

SOURCES = ("op_costs.cpp", "op_products.cpp", "op_puts.cpp")


def is_counted_alike(name, function, args, kwargs):
    """PyTorch's formulas count causal attention whole, and know no groups."""
    if name.startswith("convolution"):
        return dict(arguments_of(function, args, kwargs))["groups"] == 1
    if "attention" not in name:
        return True
    query, key = args[name.endswith("_backward"):][:2]
    is_causal = dict(arguments_of(function, args, kwargs))["is_causal"]
    return not is_causal and query.shape[1] == key.shape[1]


@unittest.skipIf(WHY_NOT, WHY_NOT or "")
class Costs(unittest.TestCase):
    def test_every_operator_costs_what_was_recorded(self):
        recorded = dict(map(json.loads, RECORD.read_text().splitlines()))
        self.assertEqual(set(recorded), set(CALLS))
        for name in CALLS:
            with self.subTest(operator=name):
                self.assertEqual(costs_of(name), recorded[name])

    def test_flops_are_those_of_pytorchs_counter(self):
        compared = set()
        for name in CALLS:
            for seed in range(10 * EACH):
                function, args, kwargs, result, *tensors = drawn(name, seed)
                formula = flop_registry.get(function._overloadpacket)
                if formula is None or not is_counted_alike(name, function, args, kwargs):
                    continue
                compared.add(name)
                with self.subTest(operator=name, seed=seed):
                    said = cost(function, args, kwargs, result, *tensors)
                    self.assertEqual(said.get("flops", 0),
                                     formula(*args, **kwargs, out_val=result))
        # Since 2.15 PyTorch counts a CPU's attention as well.
        self.assertEqual(len(compared), 12 + is_since("2.15"), sorted(compared))

    def test_an_operator_that_pytorch_alone_counts_has_its_flops(self):
        half = [torch.empty(1, 32, 2, 16, dtype=torch.bfloat16, device="meta") for _ in range(3)]
        function = torch.ops.aten._efficient_attention_forward.default
        args = (*half, None, None, None, None, None, 0.0, 0)
        result = function(*args)
        formula = flop_registry[function._overloadpacket]
        self.assertEqual(cost(function, args, {}, result, half, [], result[:1])["flops"],
                         formula(*args, out_val=result))

    def test_no_operator_that_the_sources_name_is_left_out(self):
        words = set().union(*(re.findall(r'"(?:aten\.)?(\w+)"',
                                         (ROOT / "formats" / each).read_text())
                              for each in SOURCES))
        named = {word for word in words if hasattr(torch.ops.aten, word)}
        named.remove("_backward")  # how names end
        self.assertGreater(len(named), 50)
        self.assertEqual(named - set(CALLS), set())


if __name__ == "__main__":
    unittest.main()
