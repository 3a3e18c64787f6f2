"""ferry.auto: each kind of step runs under a plan of its own, under offload of everything, or
plainly; the results are the bits of a training without Ferry."""

import contextlib
import gc
import os
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

from native.support import ferry, mlp, torch
from native.test_planning import planning
from torch_ferry import batches, by_shape

from torch import nn

CARD, BUDGET = "rtx4090", "1GiB"
PROGRAM = os.environ.get("FERRY_PROGRAM", "")
# A training whose GPU says how much memory is free; then a step that needs more than is there.
ON_A_GPU = """
import torch
import torch_ferry as ferry
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)]).cuda()
other = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
step = ferry.auto(model, lambda model, x: model(x).pow(2).mean(), policies="offload")
for _ in range(2):
    step(torch.randn(512, 256, device="cuda")).backward()
print(step.card, step.plan.policy, step.budget + other.nbytes <= torch.cuda.mem_get_info()[1],
      step.budget > 18 << 30, step.offload.statistics().offloaded_count > 0)
try:
    with step:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    print(*getattr(error, "__notes__", error.args))
"""


def loss_of(model, x):
    return model(x).pow(2).mean()


def auto(model, step=loss_of, **options):
    return ferry.auto(model, step, **{"card": CARD, "budget": BUDGET, "policies": "offload",
                                      "min_bytes": 0, **options})


@contextlib.contextmanager
def plannings():
    """Yields a list that grows with each plan that is made."""
    made, make = [], planning.Request.planned

    def planned(*args):
        made.append(make(*args))
        return made[-1]
    with mock.patch.object(planning.Request, "planned", planned), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "this offload saves no memory")
        yield made


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Steps(unittest.TestCase):
    def setUp(self):
        context = plannings()
        self.made = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.model, self.x = mlp()

    def trained(self, step, sizes):
        """The losses and gradients of a training with batches of these sizes."""
        torch.manual_seed(3)
        numbers = []
        for size in sizes:
            loss = step(self.x[:size])
            loss.backward()
            numbers += [loss.detach(), *(each.grad for each in self.model.parameters())]
            self.model.zero_grad()
        return numbers

    def test_a_shape_that_comes_again_gets_a_plan_and_the_bits_are_the_same(self):
        sizes = (32, 32, 20, 8, 20, 20, 32)
        want = self.trained(lambda x: loss_of(self.model, x), sizes)
        step = auto(self.model)
        got = self.trained(step, sizes)
        self.assertTrue(all(map(torch.equal, want, got)))
        self.assertEqual(2, len(self.made))
        self.assertEqual(self.made, step.plans())
        self.assertRegex(str(step), r"(?s)^3 forwards, plan offload, .*\[32, 64\].*"
                                    r"3 forwards, plan offload, .*\[20, 64\].*"
                                    r"1 forwards, offload of everything: .*\[8, 64\]")
        self.assertTrue(step._shapes.empty())

    def test_each_step_runs_as_it_was_said_to(self):
        step = auto(self.model)
        moved = []
        for size in (32, 8, 8):
            step(self.x[:size]).backward()
            moved.append((step.plan and step.plan.row["offloaded_bytes"],
                          step.offload.step_statistics().offloaded_bytes))
        self.assertEqual(moved[0][0], moved[0][1])
        self.assertIsNone(moved[1][0])
        self.assertGreater(moved[1][1], 0)
        self.assertEqual(moved[2][0], moved[2][1])

    def test_what_is_no_training_runs_plainly(self):
        step = auto(self.model)
        step(self.x).backward()
        before = step.offload.statistics().packs
        self.model.eval()
        with torch.no_grad():
            step(self.x)
        self.assertEqual(before, step.offload.statistics().packs)

    def test_other_modes_dropout_and_autocast_are_no_mismatch(self):
        step = auto(self.model)
        step(self.x).backward()

        def without_dropout():
            self.model[2].p = 0.0

        for change in (self.model.eval, self.model.train, without_dropout,
                       lambda: self.model[0].requires_grad_(False)):
            change()
            for _ in range(2):
                step(self.x).backward()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            step(self.x).backward()
        self.assertIsNone(step.plan)
        self.assertEqual(4, len(self.made))  # as it was, eval, without dropout, frozen

    def test_the_least_used_plan_makes_room(self):
        step = auto(self.model, plans_max=2)
        for size in (32, 8, 8, 16, 16, 8):  # 16 came more often than 32
            step(self.x[:size]).backward()
        self.assertEqual(3, len(self.made))
        self.assertEqual(self.made[1:], step.plans())
        step(self.x).backward()  # 32 came as often as 16: that is not more often
        self.assertIsNone(step.plan)
        self.assertTrue(step._shapes.empty())

    def test_a_plan_that_makes_room_leaves_its_graph_alive(self):
        step = auto(self.model, plans_max=1)
        torch.manual_seed(1)
        alive = step(self.x)
        for _ in range(2):
            step(self.x[:8]).backward()
        self.assertEqual(2, len(self.made))
        gc.collect()
        self.model.zero_grad()
        alive.backward()
        got = [each.grad for each in self.model.parameters()]
        self.model.zero_grad()
        torch.manual_seed(1)
        loss_of(self.model, self.x).backward()
        self.assertTrue(all(map(torch.equal, got, [each.grad for each in
                                                   self.model.parameters()])))

    def test_so_many_plans_are_made_and_no_more(self):
        step = auto(self.model, plans_max=1)
        for times in range(1, 12):
            for _ in range(times):
                step(self.x[:times]).backward()
        self.assertEqual(by_shape._MADE, len(self.made))

    def test_the_first_error_is_raised_and_later_ones_are_warnings(self):
        with self.assertRaises(ferry.DoesNotFit):
            auto(self.model, budget="1MiB")(self.x)
        def penalised(model, x):
            if len(x) == 8:  # no capture can see this gradient
                x = x.requires_grad_()
                x = x + torch.autograd.grad(loss_of(model, x), x)[0]
            return loss_of(model, x)

        step = auto(self.model, penalised)
        step(self.x).backward()
        step(self.x[:8].clone()).backward()
        with self.assertWarnsRegex(UserWarning, "offload of everything: .*backward inside"):
            step(self.x[:8].clone()).backward()
        step(self.x[:8].clone()).backward()
        self.assertEqual(1, len(self.made))

    def test_a_later_batch_that_does_not_fit_runs_by_the_plan_that_needs_least(self):
        model, x = mlp(256, 6)[0], torch.randn(4096, 256)
        step = auto(model, budget="40MiB")
        step(x[:64].clone()).backward()
        step(x).backward()
        with self.assertWarnsRegex(UserWarning, "the plan that needs least: .*Nothing fits in 40"):
            step(x).backward()
        self.assertFalse(step.plan.row["fits"])
        self.assertEqual(step.plan.row["offloaded_bytes"],
                         step.offload.step_statistics().offloaded_bytes)

    def test_what_a_step_returns(self):
        class Output(dict):
            pass

        step = auto(self.model, lambda model, x: Output(loss=loss_of(model, x)))
        self.assertIsInstance(step(self.x), Output)
        self.assertEqual("offload", step.plan.policy)
        with self.assertRaisesRegex(TypeError, "step: expected a loss.*got tuple.*step="):
            auto(self.model, lambda model, x: (model(x), 1))(self.x)

    def test_options_are_read_when_it_is_made(self):
        for wrong, said in (({"card": "4090"}, "did you mean 'rtx4090'"),
                            ({"budget": "20 apples"}, "^budget: expected a size"),
                            ({"plans_max": 0}, "^plans_max: expected a number of plans"),
                            ({"hold": "20 apples"}, "^hold: expected a size"),
                            ({"card": None}, "^no GPU is present: expected card=, because"),
                            ({"card": None, "budget": None}, r"expected card= and budget=")):
            with self.assertRaisesRegex(ValueError, said):
                auto(self.model, **wrong)


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class LargestBatch(unittest.TestCase):
    def asked(self, **options):
        self.model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
        self.sizes = []

        def make(size):
            self.sizes.append(size)
            return torch.empty(size, 256)
        return ferry.largest_batch(make, self.model, loss_of, **{"card": CARD, **options})

    def fits(self, size, **options):
        try:
            ferry.plan(self.model, torch.empty(size, 256), lambda y: y.pow(2).mean(), card=CARD,
                       **options)
        except ferry.DoesNotFit:
            return False
        return True

    def test_it_is_the_last_one_that_fits(self):
        asked = {"budget": "60MiB", "policies": "keep"}
        size = self.asked(**asked)
        self.assertGreater(size, 64)
        self.assertTrue(self.fits(size, **asked))
        self.assertFalse(self.fits(size + 1, **asked))

    def test_few_sizes_are_asked_for(self):
        draw = random.Random(1)
        for _ in range(300):
            fixed, each = draw.randrange(1, 1000), draw.randrange(1, 50)
            block, budget, size_max = draw.randrange(1, 200), draw.randrange(5000), 4096
            sizes = []

            def least(size):
                sizes.append(size)
                bytes_ = -(-(fixed + each * size) // block) * block
                return bytes_, bytes_ <= budget
            size = batches.largest_from_one(least, size_max, budget)
            self.assertLessEqual(len(sizes), 22)
            self.assertEqual(len(sizes), len(set(sizes)))
            self.assertTrue(0 <= size <= size_max)
            self.assertTrue(size == 0 or least(size)[1])
            self.assertTrue(size == size_max or not least(size + 1)[1])

    def test_where_one_sample_does_not_fit_it_says_so(self):
        with self.assertRaisesRegex(ferry.DoesNotFit, "Nothing fits in 1.00 MiB"):
            self.asked(budget="1MiB", policies="keep")
        with self.assertRaisesRegex(ValueError, "^size_max: expected"):
            self.asked(budget="1GiB", size_max=0)


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), "the program ferry was not built")
@unittest.skipIf(torch.version.cuda is None, "no GPU: torch without CUDA")
class VirtualGpu(unittest.TestCase):
    def test_the_card_and_what_is_free_are_the_gpus(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(ON_A_GPU)
            script.flush()
            done = subprocess.run(
                [PROGRAM, "run", "--python", sys.executable, "--hide-gpu", "--card", CARD,
                 script.name], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("rtx4090 offload True True True\n", done.stdout)
        self.assertRegex(done.stdout, r"torch_ferry: the plan offload has its peak at .* of "
                                      r"parameters.*\nNow cuda:0 has 1\.0\d GiB allocated and .* "
                                      r"of parameters, .* and 1\.0\d GiB of activations")
        self.assertIn("0 violations", done.stderr)


if __name__ == "__main__":
    unittest.main()
