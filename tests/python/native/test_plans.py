"""A plan that `ferry plan` made of a captured step, executed in Python."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import unittest

from native.support import ferry, mlp, same, step, torch

PROGRAM = os.environ.get("FERRY_PROGRAM", "")


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), "the program ferry was not built")
class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from torch_ferry import capture
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        program, cls.plan = (pathlib.Path(cls.folder.name, name) for name in ("p.jsonl", "p.json"))
        cls.model, _ = mlp(width=256, layers=4)
        cls.x = torch.randn(1024, 256)
        cls.model[2] = cls.model[5] = cls.model[8] = cls.model[11] = torch.nn.Identity()
        captured = capture.capture(cls.model, (cls.x,), lambda y: y.pow(2).mean(), name="mlp")
        captured.write(program)
        done = subprocess.run([PROGRAM, "plan", program, "--card", "rtx4090", "--policy",
                               "offload", "-o", cls.plan], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def test_it_is_executed_and_says_so_in_the_log(self):
        want = step(self.model, self.x, contextlib.nullcontext())
        offload = ferry.execute(self.plan, decisions=True)
        for _ in range(3):
            self.assertTrue(same(want, step(self.model, self.x, offload)))
        self.assertGreater(offload.statistics().offloaded_count, 0)
        self.assertIn('"moves":[', offload.take_decisions())
        self.assertTrue(offload.empty())

    def test_another_model_is_refused_by_the_op_that_saves(self):
        other, x = mlp(width=32)
        with self.assertRaisesRegex(ferry.PlanMismatch, "does not match the plan at saved tensor"):
            step(other, x, ferry.execute(self.plan))

    def test_a_forward_that_saved_too_little_is_refused_as_it_ends(self):
        offload = ferry.execute(self.plan)
        with self.assertRaisesRegex(ferry.PlanMismatch, "the last forward saved"), offload:
            self.model[:3](self.x)
        step(self.model, self.x, offload)

    def test_one_that_an_exception_left_is_not(self):
        offload = ferry.execute(self.plan)
        with self.assertRaises(KeyError), offload:
            self.model[:3](self.x)
            raise KeyError
        step(self.model, self.x, offload)

    def test_saved_tensors_of_dtypes_that_a_plan_has_no_name_for(self):
        from torch_ferry import capture

        class Filter(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(512, 129, dtype=torch.complex64))

            def forward(self, x):
                spectrum = torch.fft.rfft(x * 2)
                return torch.fft.irfft(spectrum * self.weight * spectrum)

        model, x = Filter(), torch.randn(512, 256, requires_grad=True)
        program, plan = (pathlib.Path(self.folder.name, name) for name in ("f.jsonl", "f.json"))
        captured = capture.capture(model, (x,), lambda y: y.pow(2).mean(), device="cpu")
        captured.write(program)
        subprocess.run([PROGRAM, "plan", program, "--card", "rtx4090", "--policy", "offload",
                        "-o", plan], capture_output=True, check=True)
        want = step(model, x, contextlib.nullcontext())
        offload = ferry.execute(plan)
        self.assertTrue(same(want, step(model, x, offload)))
        self.assertGreater(offload.statistics().offloaded_count, 0)

    def test_a_file_that_is_no_plan(self):
        path = pathlib.Path(self.folder.name, "wrong.json")
        path.write_text('{"ferry": "plan",\n "schema": 7}\n')
        with self.assertRaisesRegex(ValueError, "wrong.json:2"):
            ferry.execute(path)


if __name__ == "__main__":
    unittest.main()
