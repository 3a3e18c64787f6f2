"""The examples of docs/guides/which-one.md and python.md run, and all give the same gradients; so
does the loss in slices of does-not-fit.md."""

import contextlib
import io
import pathlib
import re
import unittest
import warnings

from native.support import ferry, torch
from native.test_planning import planning
from torch import nn

GUIDES = pathlib.Path(__file__).resolve().parents[3] / "docs/guides"


def examples(page):
    text = (GUIDES / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Pages(unittest.TestCase):
    def test_examples_run_and_are_the_same_training(self):
        chosen, python = examples("which-one.md"), examples("python.md")
        self.assertEqual((4, 5), (len(chosen), len(python)))
        torch.manual_seed(1)
        layers = [nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(4)]
        model, x = nn.Sequential(*layers), torch.randn(64, 64)
        names = {"model": model, "layers": layers, "x": x, "ferry": ferry,
                 "loss_fn": lambda output: output.pow(2).mean()}
        names["loss_fn"](model(x)).backward()
        want = [each.grad.clone() for each in model.parameters()]
        with contextlib.redirect_stdout(io.StringIO()) as said, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(python[0], "the import", "exec"), names)
            for number, block in enumerate(chosen + python[1:3]):
                model.zero_grad()
                exec(compile(block, f"example {number}", "exec"), names)
                for grad, parameter in zip(want, model.parameters()):
                    self.assertTrue(torch.equal(grad, parameter.grad), block)
        self.assertIn("copied to the host", said.getvalue())
        self.assertIn("planned: ", said.getvalue())

    @unittest.skipIf(torch.cuda.is_available(), "a GPU is there")
    def test_what_plans_for_the_gpu_asks_for_a_card_without_one(self):
        for block in examples("python.md")[3:]:
            names = {"model": nn.Linear(1024, 8), "ferry": ferry, "torch": torch, "batches": [],
                     "loss_fn": nn.functional.mse_loss, "optimizer": "adamw"}
            with self.assertRaisesRegex(ValueError, "card="):
                exec(compile(block, "example", "exec"), names)


class LossInSlices(unittest.TestCase):
    def test_it_is_the_loss(self):
        block, = examples("does-not-fit.md")
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
