"""Steps that ask for values, of every operator of PyTorch that does: captured where the values are
known, as the step that runs; refused where they are not, with the line and with what to do."""

import inspect
import unittest

from captures import WHY_NOT, ferry_capture, torch

if torch:
    import torch.nn.functional as F
    from known_cases import CASES, FREE, VALUES
    from torch import nn
    from torch_ferry.op_call import dtype_name
    from torch_ferry.shapes import FORMULAS

    class Step(nn.Module):
        def __init__(self, forward, known):
            super().__init__()
            self.w, self.step, self.known = nn.Parameter(torch.ones(6, 6)), forward, known
            self.offset = torch.tensor(2.5)

        def forward(self, x):
            def known(name):
                return VALUES[name].to(x.device)

            def unknown(name):
                values = known(name)
                drawn = x.detach().flatten()[:values.numel()] * 0 + values
                return drawn > 0.5 if values.dtype == torch.bool else drawn.to(values.dtype)
            return self.step(x * self.w, known if self.known else unknown)


def captured(forward, known=True, device="cpu"):
    torch.manual_seed(1)
    return ferry_capture.capture(Step(forward, known), (torch.ones(6, 6),), lambda y: y.sum(),
                                 device=device)


def saved_by(program):
    """(dtype, shape) of what a program says that autograd saves, sorted."""
    kinds = {number: line for number, line in enumerate(program.globals)}
    saved = []
    for line in program.codes[1].statements:
        kinds |= {made["slot"]: made for made in line["out"]} if "op" in line else {}
        kinds |= {line["view"]: line} if "view" in line else {}
        saved += line["saved"] if "saved" in line else line["slots"] if "save" in line else []
    return sorted((kinds[slot]["dtype"], kinds[slot]["shape"]) for slot in saved)


def saved_in_training(forward):
    saved = []

    def pack(tensor):
        saved.append((dtype_name(tensor.dtype), list(tensor.shape)))
        return tensor
    torch.manual_seed(1)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        Step(forward, True)(torch.ones(6, 6)).sum()
    return sorted(saved)


def shapes(program):
    return [(line["op"], made["shape"]) for line in program.codes[1].statements if "op" in line
            for made in line["out"]]


@unittest.skipIf(torch is None, WHY_NOT)
class Known(unittest.TestCase):
    def test_what_is_known_is_captured_as_it_trains(self):
        for name, forward in (CASES | FREE).items():
            with self.subTest(name):
                self.assertEqual(saved_by(captured(forward)), saved_in_training(forward))

    def test_what_is_not_known_is_refused_with_its_line_and_with_what_to_do(self):
        for name, forward in CASES.items():
            with self.subTest(name), self.assertRaisesRegex(
                    ferry_capture.CaptureError, r"known_cases\.py:\d+ asks for .* give lengths, "
                    "masks and repeats as lists.*--assume"):
                captured(forward, known=False)

    def test_what_needs_no_value_is_captured_with_any(self):
        for name, forward in FREE.items():
            with self.subTest(name):
                self.assertEqual(saved_by(captured(forward, known=False)),
                                 saved_by(captured(forward)))

    def test_a_gpu_has_the_same_shapes(self):
        for name in ("index", "masked_select", "bincount_weights", "repeats", "tensor", "index_put",
                     "written", "format"):
            with self.subTest(name):
                self.assertEqual(shapes(captured(CASES[name], device="cuda")),
                                 shapes(captured(CASES[name])))
        for name, op in {"ctc": "_ctc_loss", "ctc_lists": "_ctc_loss",
                         "packed_lstm": "_thnn_fused_lstm_cell",
                         "packed_gru": "_thnn_fused_gru_cell"}.items():
            with self.subTest(name):
                ops = shapes(captured(CASES[name], device="cuda"))
                self.assertIn(f"aten.{op}", [made for made, _ in ops])


@unittest.skipIf(torch is None, WHY_NOT)
class Sources(unittest.TestCase):
    """What is known, and what is not."""

    def branches(self, forward, module=None):
        module = module or nn.Linear(4, 4)
        module.forward = lambda x: F.linear(x, module.weight) * (2 if forward(module, x) else 3)
        return ferry_capture.capture(module, (torch.ones(2, 4),), lambda y: y.sum(), device="cpu")

    def test_a_constant_of_floating_point_is_known_wherever_it_is_held(self):
        module, outside = nn.Linear(4, 4), torch.tensor([0.5, 2.5])
        module.register_buffer("scale", torch.tensor(2.5))
        module.kept = torch.tensor(2.5)
        for forward in (lambda m, x: m.scale > 2, lambda m, x: m.kept.item() == 2.5,
                        lambda m, x: outside[1] > outside[0],
                        lambda m, x: torch.tensor(2.5).item() == 2.5):
            self.branches(forward, module)

    def test_parameters_inputs_and_what_is_drawn_are_not(self):
        other = nn.Linear(4, 4)
        frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        for forward in (lambda m, x: m.weight.sum() > 0, lambda m, x: x.sum() > 0,
                        lambda m, x: m.weight.detach()[0, 0] > 0, lambda m, x: frozen.sum() > 0,
                        lambda m, x: other.bias.data.sum() > 0, lambda m, x: torch.rand(()) > 0.5):
            with self.assertRaisesRegex(ferry_capture.CaptureError, "asks for a tensor's value"):
                self.branches(forward)

    def test_a_constant_that_shares_an_inputs_memory_is_not(self):
        x = torch.ones(2, 4)
        row = x[0]
        module = nn.Linear(4, 4)
        module.forward = lambda x: F.linear(x, module.weight) * (2 if row.sum() > 0 else 3)
        with self.assertRaisesRegex(ferry_capture.CaptureError, "asks for a tensor's value"):
            ferry_capture.capture(module, (x,), lambda y: y.sum(), device="cpu")

    def test_memory_that_was_not_written_is_not(self):
        lengths = VALUES["lengths"]

        def part(m, x):
            made = torch.empty_like(lengths)
            made[0] = 1
            return made[0] > 0

        def copied(m, x):
            return torch.empty_like(lengths).copy_(torch.empty_like(lengths))[0] > 0

        def by_a_view(m, x):
            made = torch.empty_like(lengths)
            first = made[0]
            made.copy_(lengths)
            first.copy_(x[0, 0].detach())
            return made[0] > 0
        for forward in (part, copied, by_a_view, lambda m, x: lengths.new_empty(3)[0] > 0,
                        lambda m, x: torch.empty_like(lengths).add_(1)[0] > 0):
            with self.assertRaisesRegex(ferry_capture.CaptureError, "asks for a tensor's value"):
                self.branches(forward)

    def test_a_tensor_that_is_made_on_the_host_stays_there(self):
        places = []

        def note(y):
            places.extend(each.device.type for each in (
                torch.tensor([1.0]), torch.tensor([1.0], device="cpu"),
                torch.as_tensor([3, 1], device="cpu")))
            return y.sum()
        ferry_capture.capture(nn.Linear(4, 4), (torch.ones(2, 4),), note, device="cuda")
        self.assertEqual(["cuda", "cpu", "cpu"], places)


@unittest.skipIf(torch is None, WHY_NOT)
class Operators(unittest.TestCase):
    """Nothing of PyTorch's is forgotten."""

    # Functions of several operators, and the versions of an operator that write into `out`.
    ELSEWHERE = {"item", "one_hot", "argwhere"}
    NOT_YET = {"unique_dim_consecutive"}

    def test_each_operator_whose_shape_depends_on_values_has_a_case_or_a_formula(self):
        tags = torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape
        names = set()
        for name in torch._C._dispatch_get_all_op_names():
            base, _, overload = name.removeprefix("aten::").partition(".")
            packet = getattr(torch.ops.aten, base, None) if name.startswith("aten::") else None
            each = getattr(packet, overload or "default", None)
            if each is not None and any(tag in each.tags for tag in tags):
                names.add(base)
        met = self.met()
        self.assertEqual(set(), names - met - set(FORMULAS) - self.ELSEWHERE - self.NOT_YET)

    def met(self):
        """The operators that the cases call."""
        from torch.utils._python_dispatch import TorchDispatchMode
        found = set()

        class Look(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                found.add(func._overloadpacket.__name__)
                return func(*args, **(kwargs or {}))
        with Look():
            for forward in (CASES | FREE).values():
                Step(forward, True)(torch.ones(6, 6))
        return found


if __name__ == "__main__":
    unittest.main()
