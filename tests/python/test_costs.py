"""The two tables of what an operator costs say the same: formats/op_costs.h, which the virtual GPU
and C++'s captures count by, and torch_ferry.costs, by which Python's do.

FERRY_COSTS_PROGRAM names the program that says what the first has; without it this is skipped.
"""

import json
import os
import random
import re
import subprocess
import unittest

from captures import ROOT, WHY_NOT, torch

PROGRAM = os.environ.get("FERRY_COSTS_PROGRAM", "")
if not WHY_NOT and not os.path.exists(PROGRAM):
    WHY_NOT = "no program: FERRY_COSTS_PROGRAM names no ferry-op-costs"
if not WHY_NOT:
    from drawn_calls import CALLS, Draws
    from torch_ferry import costs, puts
    from torch_ferry.op_call import argument, tensors_in, tensors_of
    from torch_ferry.lower import DTYPES
    from torch_ferry.program import type_fields

EACH = 40
FLAGS = ("is_causal", "transposed", "accumulate", "unsafe", "include_self", "reduce")
SOURCES = ("op_costs.cpp", "op_products.cpp", "op_puts.cpp")


def layout_of(tensor):
    return type_fields(DTYPES[tensor.dtype], tensor.shape, tensor.stride(),
                       tensor.storage_offset())


def drawn(name, seed):
    """(the call as the program reads it, what Python says that it costs)."""
    function, *args = CALLS[name](Draws(random.Random(f"{name} {seed}")))
    kwargs = args.pop() if isinstance(args[-1], dict) else {}
    inputs, written = tensors_of(function, args, kwargs)
    result = function(*args, **kwargs)
    given = {tensor.untyped_storage()._cdata for tensor in inputs}
    fresh = [tensor for tensor in tensors_in(result)
             if name == "lift_fresh" or tensor.untyped_storage()._cdata not in given]
    flags = {flag: argument(function, args, kwargs, flag, None) for flag in FLAGS}
    call = {"op": f"aten.{name}", "in": [layout_of(t) for t in inputs],
            "out": [layout_of(t) for t in fresh], "writes": written,
            "flags": {flag: value for flag, value in flags.items() if value is not None}}
    return call, as_program_says(costs.cost(function, args, kwargs, result, inputs, written, fresh))


def as_program_says(said):
    products = said.get("matmul", [])
    if products and not isinstance(products[0], list):
        products = [products]
    return {"flops": said.get("flops", 0), "read": said.get("read", 0),
            "written": said.get("written", 0), "kernels": said.get("kernels", 1),
            "products": [[*each, said.get("aligned", 16)] for each in products]}


@unittest.skipIf(WHY_NOT, WHY_NOT or "")
class Costs(unittest.TestCase):
    def test_both_tables_say_the_same_of_every_operator_that_they_name(self):
        drawn_calls = [(name, seed, *drawn(name, seed)) for name in CALLS for seed in range(EACH)]
        said = subprocess.run([PROGRAM], input="".join(json.dumps(call) + "\n"
                                                       for _, _, call, _ in drawn_calls),
                              capture_output=True, text=True, check=True, timeout=60)
        lines = [json.loads(line) for line in said.stdout.splitlines()]
        self.assertEqual(len(lines), len(drawn_calls))
        for line, (name, seed, call, pythons) in zip(lines, drawn_calls):
            with self.subTest(operator=name, seed=seed):
                self.assertEqual(line, pythons, json.dumps(call))

    def test_no_operator_that_a_table_names_is_left_out(self):
        named = set().union(*(re.findall(r'"aten\.(\w+)"', (ROOT / "formats" / each).read_text())
                              for each in SOURCES))
        pythons = (costs.SHAPE_ONLY | costs.WRITES_NOTHING | costs.OVERWRITES | costs.GATHERS
                   | costs.LOSSES | costs.LOSS_GRADIENTS | puts.PUTS)
        self.assertEqual((named | pythons) - set(CALLS), set())


if __name__ == "__main__":
    unittest.main()
