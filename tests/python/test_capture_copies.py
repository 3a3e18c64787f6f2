"""The copy of a model that a capture runs, and what is said where there can be none."""

import threading
import unittest

from captures import WHY_NOT, ferry_capture, torch

if torch:
    from torch import fx, nn


def net(**attributes):
    made = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    for name, value in attributes.items():
        setattr(made[1], name, value)
    return made


def capture(module):
    return ferry_capture.capture(module, (torch.ones(2, 4),), lambda y: y.sum(), device="cpu")


if torch:
    class BuildsCode(nn.Module):
        """As equivariant networks do: their code is traced anew where they are copied."""

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.make()

        def make(self):
            graph = fx.Graph()
            tracer = fx.proxy.GraphAppendingTracer(graph)
            x = fx.Proxy(graph.placeholder("x"), tracer)
            graph.output((torch.broadcast_tensors(x, x)[0] * torch.relu(x)).node)
            self.code = [fx.GraphModule({}, graph)]

        def __getstate__(self):
            return {key: value for key, value in vars(self).items() if key != "code"}

        def __setstate__(self, state):
            vars(self).update(state)
            self.make()

        def forward(self, x):
            return self.code[0](self.linear(x))

    class Raises(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x)

    class Quantized(nn.Parameter):
        """Copies itself as bitsandbytes' four bits do: of an empty one, then its bytes."""

        def __new__(cls, data=None):
            return torch.Tensor._make_subclass(cls, torch.empty(0) if data is None else data)

        def __deepcopy__(self, memo):
            made = type(self)()
            made.data, made.scale = self.data, self.scale
            return made

    class Scales(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = Quantized(torch.ones(4, 4, dtype=torch.uint8))
            self.weight.scale = torch.full((4,), 2.0)
            self.factor = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x @ (self.weight.to(x.dtype) * self.weight.scale) * self.factor

    class InState(Raises):
        def __setstate__(self, state):
            raise KeyError("version")

    class InCopy(Raises):
        def __deepcopy__(self, memo):
            raise RuntimeError("only once")


@unittest.skipIf(torch is None, WHY_NOT)
class Copies(unittest.TestCase):
    def test_code_that_is_traced_while_it_is_copied(self):
        program = capture(BuildsCode())
        ops = [line["op"] for line in program.codes[1].statements if "op" in line]
        self.assertIn("aten.relu", ops)

    def test_a_parameter_whose_class_copies_it_is_fake_with_what_hangs_on_it(self):
        made = Scales()
        program = capture(made)
        self.assertEqual({"weight": "u8", "factor": "f32", "input.0": "f32", "constant.0": "f32"},
                         {line["name"]: line["dtype"] for line in program.globals})
        self.assertIs(Quantized, type(made.weight))
        self.assertEqual([4, 4], list(made.weight.shape))

    def test_what_cannot_be_copied_is_named(self):
        here = r"test_capture_copies\.py:\d+"
        cases = {
            "a lock": (net(lock=threading.Lock()), "^the model.*Sequential.1.lock raises Type"),
            "an iterator": (net(rows=(row for row in [])), "^the model.*Sequential.1.rows raises"),
            "within": (net(held={"deep": [threading.Lock()]}), r"Sequential\.1\.held raises"),
            "its state": (nn.Sequential(InState()), f"^.*{here}: .*Sequential.0 raises KeyError"),
            "its copy": (InCopy(), f"^.*{here}: .*InCopy raises RuntimeError: only once"),
        }
        for name, (module, expected) in cases.items():
            with self.subTest(name), self.assertRaisesRegex(
                    ferry_capture.CaptureError, rf"{expected}.*fake_mode\(\):"):
                capture(module)

    def test_a_model_that_is_made_of_fakes_is_not_copied(self):
        with ferry_capture.fake_mode():
            module = net(lock=threading.Lock())
            x = torch.ones(2, 4)
        ferry_capture.capture(module, (x,), lambda y: y.sum(), device="cpu")


if __name__ == "__main__":
    unittest.main()
