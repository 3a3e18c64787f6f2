"""A loop of somebody else's with our one line: the same weights, and guards around what trains."""

import copy
import unittest

from native.support import ferry, mlp, same, torch

try:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
except ImportError:
    Accelerator = None


class Net(torch.nn.Module):
    """With a head, whose input is the only tensor that it saves."""

    def __init__(self):
        super().__init__()
        self.body, _ = mlp()
        self.lm_head = torch.nn.Linear(64, 8)

    def forward(self, x):
        return self.lm_head(self.body(x))


class Counted(ferry.Offload):
    guards = 0

    def __enter__(self):
        self.guards += 1
        return super().__enter__()


def batches():
    torch.manual_seed(4)
    return torch.utils.data.DataLoader(torch.randn(48, 64), batch_size=8)


def loop(accelerator, line=lambda model: None):
    """As a user of Accelerate writes it, with two forwards to a step and an evaluation after each.
    Returns what the line made, and the weights."""
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, data = accelerator.prepare(model, optimizer, batches())
    made = line(model)
    torch.manual_seed(5)
    for x in data:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).pow(2).mean())
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            model(x)
        model.train()
    return made, [parameter.detach() for parameter in model.parameters()]


@unittest.skipUnless(Accelerator, "no accelerate")
class Accelerate(unittest.TestCase):
    def test_weights_are_the_same_bits_and_each_training_forward_has_a_guard(self):
        for precision in ("no", "bf16"):
            with self.subTest(precision):
                def accelerator():
                    AcceleratorState._reset_state(reset_partial_state=True)  # a process has one
                    return Accelerator(cpu=True, mixed_precision=precision,
                                       gradient_accumulation_steps=2)
                _, want = loop(accelerator())
                made, got = loop(accelerator(), lambda model: ferry.offload_activations(
                    model, offload=Counted(window="4KiB")))
                self.assertTrue(same(want, got))
                self.assertGreater(made.offload.statistics().offloaded_count, 0)
                self.assertTrue(made.offload.empty())
                self.assertEqual(6, made.offload.guards)


class Forwards(unittest.TestCase):
    def packs(self, model, made):
        before = made.offload.statistics().packs
        model(torch.randn(8, 64)).sum().backward()
        return made.offload.statistics().packs - before

    def test_the_head_stays_and_all_of_the_model_is_as_it_was_after_remove(self):
        model = Net()
        plain = [*map(str, model.__dict__.values())]
        counts = []
        for keep_head in (False, True):
            made = ferry.offload_activations(model, keep_head=keep_head)
            counts.append(self.packs(model, made))
            made.remove()
            self.assertEqual(0, self.packs(model, made))
            self.assertEqual(plain, [*map(str, model.__dict__.values())])
        self.assertEqual(2, counts[0] - counts[1])  # its input and its weight

    def test_a_forward_that_raised_leaves_no_guard_open(self):
        model = Net()
        made = ferry.offload_activations(model)
        with self.assertRaises(RuntimeError):
            model(torch.randn(3))
        torch.randn(4096, requires_grad=True).exp()
        self.assertEqual(0, made.offload.statistics().offloaded_count)
        self.assertGreater(self.packs(model, made), 0)

    def test_a_copy_of_the_model_is_offloaded_as_well(self):
        model = Net()
        made = ferry.offload_activations(model)
        packs = self.packs(model, made)
        self.assertGreater(packs, 0)
        self.assertEqual(packs, self.packs(copy.deepcopy(model), made))

    def test_what_contradicts_is_refused(self):
        with self.assertRaisesRegex(TypeError, "window cannot be given beside it"):
            ferry.offload_activations(Net(), offload=ferry.offload(), window=0)
        with self.assertRaisesRegex(TypeError, r"with torch_ferry\.execute\(plan\)"):
            ferry.offload_activations(Net(), plan="x")


if __name__ == "__main__":
    unittest.main()
