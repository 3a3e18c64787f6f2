"""The card of a GPU by its name, the budget of what is free, and what an out-of-memory error says,
with a torch.cuda that gives these answers."""

import contextlib
import traceback
import types
import unittest
from unittest import mock

from native.support import ferry, mlp, torch
from native.test_planning import planned, planning
from torch_ferry import gpu, out_of_memory

GIB = 1 << 30


@contextlib.contextmanager
def answers(name="NVIDIA GeForce RTX 4090", total=23.65, free=20.0, reserved=2.0, allocated=0.0,
            fraction=1.0):
    """torch.cuda of a machine with this GPU; sizes in GiB."""
    total, free, reserved, allocated = (int(each * GIB) for each in
                                        (total, free, reserved, allocated))
    given = {"is_available": True, "current_device": 0, "get_device_name": name,
             "get_device_properties": types.SimpleNamespace(total_memory=total),
             "mem_get_info": (free, total), "memory_reserved": reserved,
             "memory_allocated": allocated, "get_per_process_memory_fraction": fraction,
             "empty_cache": None}
    with contextlib.ExitStack() as stack:
        for function, value in given.items():
            stack.enter_context(mock.patch.object(torch.cuda, function,
                                                  lambda *_, value=value: value))
        stack.enter_context(mock.patch.object(gpu, "device_of", lambda model: "cuda"))
        yield


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Card(unittest.TestCase):
    def test_by_the_name_that_pytorch_reports(self):
        for name, total, card in (
                ("NVIDIA GeForce RTX 4090", 23.65, "rtx4090"), ("NVIDIA H200", 139.8, "h200"),
                ("NVIDIA A100-SXM4-80GB", 79.15, "a100"), ("Tesla T4", 14.6, "t4"),
                ("NVIDIA A100-SXM4-40GB", 39.4, "a100-40"), ("NVIDIA L4", 22.0, "l4"),
                ("NVIDIA H100 80GB HBM3", 79.1, "h100"), ("NVIDIA H100 PCIe", 79.1, "h100-pcie"),
                ("Tesla V100-SXM2-16GB", 15.8, "v100-16"), ("NVIDIA TITAN V", 11.8, "titan-v"),
                ("rtx3090 (no GPU: Ferry's virtual one) 0", 1.0, "rtx3090")):
            with self.subTest(name), answers(name, total):
                self.assertEqual(card, gpu.card_of(0))

    def test_an_unknown_one_asks_for_card(self):
        for name, total in (("NVIDIA GeForce RTX 4070 Ti", 11.7), ("NVIDIA A10G", 22.0),
                            ("NVIDIA GeForce RTX 3080", 11.7),  # the one with 12 GB
                            ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4.8), ("GPU", 23.65)):
            with self.subTest(name), answers(name, total):
                with self.assertRaisesRegex(gpu.NoGpu, r"^card: the GPU '.*expected card="):
                    gpu.card_of(0)


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Budget(unittest.TestCase):
    def budget(self, model=None, card=None, **machine):
        with answers(**machine):
            return gpu.target(model or mlp()[0], None, (), card)

    def test_what_is_free_and_what_this_process_has(self):
        self.assertEqual(("rtx4090", 22 * GIB), self.budget())
        self.assertEqual(("rtx4090", 12 * GIB), self.budget(free=10.0))
        self.assertEqual(("h200", 22 * GIB), self.budget(card="h200"))

    def test_other_tensors_of_this_process_are_not_of_the_training(self):
        model = mlp()[0]
        held = sum(each.nbytes for each in model.parameters())
        self.assertEqual(21 * GIB + held, self.budget(model, allocated=1.0)[1])
        optimizer = torch.optim.AdamW(model.parameters())
        sum(each.sum() for each in model.parameters()).backward()
        optimizer.step()
        kinds = gpu.held_bytes((model, optimizer, {"x": torch.empty(8), "y": [1]}), "cpu")
        self.assertEqual((held, held, 32), tuple(kinds[kind] for kind in
                                                 ("parameters", "gradients", "inputs")))
        self.assertGreaterEqual(kinds["optimizer"], 2 * held)
        with self.assertRaisesRegex(ValueError, "^budget: other tensors of this process hold 23"):
            self.budget(allocated=23.0)

    def test_it_is_no_more_than_a_process_may_have(self):
        alone = self.budget(free=23.65, reserved=0.0)[1]
        self.assertLess(alone, 23.3 * GIB)  # CUDA's context and kernels are not there yet
        self.assertAlmostEqual(0.5, self.budget(fraction=0.5)[1] / (23.65 * GIB), 6)

    def test_on_a_cpu_it_says_what_to_give(self):
        with self.assertRaisesRegex(gpu.NoGpu, "^the model is not on a GPU: expected budget=, "):
            gpu.target(mlp()[0], card="h100")
        self.assertEqual(("h100", GIB), gpu.target(mlp()[0], card="h100", budget="1GiB"))


class OutOfMemory(unittest.TestCase):
    def said(self, guard, **machine):
        """What Python prints of an out-of-memory error in a forward under this guard."""
        text = "CUDA out of memory. Tried to allocate 1024.00 GiB"
        # Outside of Python 3.10 the text of the error itself stays.
        with self.assertRaises(torch.OutOfMemoryError) as raised, \
                answers(**machine) if machine else contextlib.nullcontext(), guard:
            raise torch.OutOfMemoryError(text)
        self.assertIs(torch.OutOfMemoryError, type(raised.exception))
        printed = "".join(traceback.format_exception(raised.exception))
        self.assertEqual(1, printed.count(text))
        self.assertEqual(1, printed.count("torch_ferry: "))
        return printed

    @unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
    def test_it_says_what_the_plan_has_at_its_peak(self):
        plan = planned(*mlp(), budget="1GiB")
        said = self.said(ferry.execute(plan))
        self.assertRegex(said, r"the plan offload has its peak at [\d.]+ MiB: .* of parameters.* It "
                               r"reserves .*, and the budget is 1\.00 GiB\.")
        said = self.said(ferry.execute(plan), free=0.25, reserved=0.5, allocated=0.5, total=23.0)
        self.assertIn("The plan is for 1.00 GiB, and this process can have 768 MiB: plan with "
                      "this budget=", said)

    def test_it_says_what_is_held_now_and_what_to_change(self):
        said = self.said(ferry.offload(), allocated=12.0, reserved=18.0, free=2.0)
        self.assertIn("has 12.0 GiB allocated and 18.0 GiB reserved by this process, 2.00 GiB free "
                      "of 23.6 GiB, and 3.65 GiB of other processes", said)
        self.assertIn("6.00 GiB is reserved but not allocated", said)
        self.assertIn("nvidia-smi", said)
        self.assertIn('OffloadCallback(plan="auto")', said)
        said = self.said(ferry.offload(), allocated=20.0, reserved=20.5, free=2.9)
        self.assertNotIn("nvidia-smi", said)
        self.assertNotIn("reserved but not", said)

    def test_the_kinds_are_the_models(self):
        model, _ = mlp(256)
        held = {"parameters": 3 * GIB, "gradients": GIB, "optimizer": 0}
        error = torch.OutOfMemoryError("no memory")
        with answers(allocated=6.0, reserved=6.0), \
                mock.patch.object(out_of_memory, "held_bytes", lambda *_: held):
            out_of_memory.explain(error, None, model)
        self.assertIn("Allocated are 3.00 GiB of parameters, 1.00 GiB of gradients, and 2.00 GiB "
                      "of activations", "".join(traceback.format_exception(error)))

    def test_other_errors_stay_as_they_are(self):
        error = RuntimeError("out of memory")
        with self.assertRaises(RuntimeError) as raised, ferry.offload():
            raise error
        self.assertIs(error, raised.exception)
        self.assertEqual(("out of memory",), error.args)
        self.assertFalse(hasattr(error, "__notes__"))


if __name__ == "__main__":
    unittest.main()
