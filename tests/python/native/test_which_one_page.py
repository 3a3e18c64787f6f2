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
        self.assertEqual(5, len(blocks))
        torch.manual_seed(1)
        layers = [nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(4)]
        model, x = nn.Sequential(*layers), torch.randn(64, 64)
        names = {"model": model, "layers": layers, "x": x, "ferry": ferry,
                 "loss_fn": lambda output: output.pow(2).mean()}
        names["loss_fn"](model(x)).backward()
        want = [each.grad.clone() for each in model.parameters()]
        with contextlib.redirect_stdout(io.StringIO()) as said, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, block in enumerate(blocks[:4]):
                model.zero_grad()
                exec(compile(block, f"example {number}", "exec"), names)
                for grad, parameter in zip(want, model.parameters()):
                    self.assertTrue(torch.equal(grad, parameter.grad), block)
        self.sliced(blocks[4])
        self.assertIn("copied to the host", said.getvalue())
        self.assertIn("planned: ", said.getvalue())

    def sliced(self, block):
        names = {"torch": torch, "ferry": ferry}
        exec(compile(block, "sliced", "exec"), names)
        hidden, head = torch.randn(4, 9, 16, requires_grad=True), nn.Linear(16, 50)
        labels = torch.randint(0, 50, (4, 9))
        whole = nn.functional.cross_entropy(head(hidden).flatten(0, 1), labels.flatten())
        want = torch.autograd.grad(whole, [hidden, head.weight])
        loss = names["sliced_loss"](hidden, head, labels)
        torch.testing.assert_close(loss, whole)
        torch.testing.assert_close(torch.autograd.grad(loss, [hidden, head.weight]), want)


if __name__ == "__main__":
    unittest.main()
