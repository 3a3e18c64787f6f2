"""The examples of docs/which-one.md run, and the ways that they are of give the same gradients."""

import contextlib
import io
import pathlib
import re
import unittest
import warnings

from native.support import ferry, torch
from native.test_planning import planning
from torch import nn

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/which-one.md"


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Page(unittest.TestCase):
    def test_its_examples_run_and_are_the_same_training(self):
        blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        self.assertEqual(4, len(blocks))
        torch.manual_seed(1)
        layers = [nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(4)]
        model, x = nn.Sequential(*layers), torch.randn(64, 64)
        names = {"model": model, "layers": layers, "x": x, "ferry": ferry,
                 "loss_fn": lambda output: output.pow(2).mean()}
        names["loss_fn"](model(x)).backward()
        want = [each.grad.clone() for each in model.parameters()]
        with contextlib.redirect_stdout(io.StringIO()) as said, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, block in enumerate(blocks):
                model.zero_grad()
                exec(compile(block, f"example {number}", "exec"), names)
                for grad, parameter in zip(want, model.parameters()):
                    self.assertTrue(torch.equal(grad, parameter.grad), block)
        self.assertIn("copied to the host", said.getvalue())
        self.assertIn("planned: ", said.getvalue())


if __name__ == "__main__":
    unittest.main()
