"""What somebody reads who used it wrongly: the words that say what to do instead."""

import contextlib
import copy
import pickle
import tempfile
import unittest
import warnings

from native.support import ferry, mlp, same, step, torch
from native.test_planning import loss_of, planned, planning
from torch import nn
from torch_ferry import optimizers, policies


@contextlib.contextmanager
def told(test, *patterns):
    """A context in which one warning is given for each pattern, and no other."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        yield
    test.assertEqual(len(patterns), len(given), [str(each.message) for each in given])
    for pattern, each in zip(patterns, given):
        test.assertRegex(str(each.message), pattern)


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class OfPlanning(unittest.TestCase):
    def setUp(self):
        self.model, self.x = mlp()

    def test_a_card_as_it_is_called_elsewhere(self):
        for asked, meant in (("A100-80GB", r"did you mean 'a100' \(NVIDIA A100 SXM4, 80 GB"),
                             ("4090", "'rtx4090'"), ("GeForce RTX 4090", "'rtx4090'"),
                             ("NVIDIA A100-SXM4-40GB", "'a100-40'"),
                             ("H100 80GB", "'h100' .* or 'h100-pcie'")):
            with self.assertRaisesRegex(ValueError, meant):
                planned(self.model, self.x, card=asked)
        with self.assertRaisesRegex(ValueError, "one of: a10, .*: did you mean 'rtx4090'"):
            planned(self.model, self.x, card="rtx409")

    def test_a_policy_that_is_none_is_told_before_anything_is_captured(self):
        def never(_):
            raise AssertionError("captured")
        for asked in ("bset", ["keep", "bset"]):
            with self.assertRaisesRegex(ValueError, "^policy: .*did you mean 'best'"):
                ferry.plan(self.model, self.x, never, card="h100", policies=asked)

    def test_one_policy_may_be_a_name(self):
        self.assertEqual("offload", planned(self.model, self.x, policies="offload").policy)

    def test_sizes_are_read_by_one_parser(self):
        self.assertEqual(20 * 10 ** 9, planned(self.model, self.x, budget="20GB").budget)
        with ferry.offload(window="20GB", min_bytes="1kB"):
            pass
        for options in ({"window": "20 apples"}, {"hold": "20Gib"}):
            with self.assertRaisesRegex(ValueError, f"^{[*options][0]}: expected a size"):
                ferry.offload(**options)

    def test_an_optimizer_is_taken_as_it_is(self):
        model, x = mlp(1024)
        parameters = [*model.parameters()]
        plans = [planned(model, x, optimizer=each) for each in (
            torch.optim.AdamW(parameters, fused=True), torch.optim.AdamW(parameters),
            "adamw", "adamw_torch")]
        peaks = [plan.row["device_peak_bytes"] for plan in plans]
        self.assertEqual([peaks[0], peaks[1]] * 2, [peaks[0], peaks[1], peaks[2], peaks[3]])
        self.assertGreater(peaks[1], peaks[0])
        for each, name in ((torch.optim.SGD(parameters, momentum=0.9), "momentum"),
                           (torch.optim.SGD(parameters), "sgd"), (torch.optim.Adam, "adam"),
                           (None, "none")):
            self.assertEqual(name, optimizers.understood(each)[0])
        for wrong in ("lion", torch.optim.Adagrad(parameters)):
            with self.assertRaisesRegex(ValueError, "the state of .* is not known"):
                planned(self.model, self.x, optimizer=wrong)


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class OfPlans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model, cls.x = mlp(256, 6)
        cls.x = torch.randn(1024, 256)
        cls.plan = planned(cls.model, cls.x)
        keep = planned(cls.model, cls.x, policies="keep", optimizer=None).row["least_bytes"]
        cls.spans = planned(cls.model, cls.x, policies="best", budget=keep * 8 // 10,
                            optimizer=None)
        assert '"spans"' in cls.spans.text

    def refused(self, pattern, model, x, plan=None, around=None):
        with self.assertRaisesRegex(ferry.PlanMismatch, "(?s)" + pattern):
            with around or contextlib.nullcontext():
                step(model, x, ferry.execute(plan or self.plan))

    def test_the_mode_is_told(self):
        model = copy.deepcopy(self.model).eval()
        for plan in (self.plan, self.spans):
            self.refused(r"planned: train mode, .*here: eval mode, .*model\.train\(\) for the "
                         "training, or model.eval", model, self.x, plan)

    def test_the_device_is_told(self):
        model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.1), nn.Linear(64, 64))
        x = torch.randn(32, 64)
        plan = ferry.plan(model, x, loss_of, card="rtx4090", device="cuda", policies="offload")
        self.refused(r'planned: .*on cuda\nhere: .*on cpu\nKernels of cuda .* device="cpu"',
                     model, x, plan)

    def test_autocast_is_told(self):
        around = torch.autocast("cpu", dtype=torch.bfloat16)
        self.refused(r"saves bf16 .*planned: train mode, no autocast.*here: train mode, autocast to "
                     r"bf16.*under the torch\.autocast that", self.model, self.x, around=around)
        with self.assertRaisesRegex(ferry.PlanMismatch, r"under the torch\.autocast that"):
            with ferry.execute(self.plan), around:  # left before the error is told
                loss_of(self.model(self.x))

    def test_dtypes_are_told(self):
        self.refused("parameters f32, inputs f32.*parameters bf16, inputs bf16.*in the dtype",
                     copy.deepcopy(self.model).bfloat16(), self.x.bfloat16())

    def test_another_batch_is_told_with_what_to_do(self):
        self.refused(r"inputs f32 \[1024, 256\].*inputs f32 \[512, 256\].*"
                     r'other_shapes="offload"', self.model, self.x[:512])

    def test_a_backward_alone_is_told(self):
        loss = loss_of(self.model(self.x))
        for plan in (self.spans,):
            with self.assertRaisesRegex(ferry.PlanMismatch, "around one forward, and not around a "
                                        "backward"):
                with ferry.execute(plan):
                    loss.backward(retain_graph=True)

    def test_a_loss_outside_is_told_at_once(self):
        offload = ferry.execute(self.plan)
        with self.assertRaisesRegex(ferry.PlanMismatch, "(?s)the last forward saved .*The loss "
                                    "function is part of the step"):
            with offload:
                self.model(self.x)
        want = step(self.model, self.x, ferry.no_offload())
        self.assertTrue(same(want, step(self.model, self.x, offload)))

    def test_two_forwards_in_one_guard_are_told(self):
        for plan in (self.plan, self.spans):
            with self.assertRaisesRegex(ferry.PlanMismatch, "(?s)One guard is one forward"):
                with ferry.execute(plan):
                    loss_of(self.model(self.x))
                    loss_of(self.model(self.x))

    def test_a_plan_has_options_of_its_own(self):
        for option in ("window", "prefetch", "hold", "min_bytes", "pinned"):
            with self.assertRaisesRegex(ValueError, f"^{option}: a plan has its own"):
                ferry.execute(self.plan, **{option: 1})
        with self.assertRaisesRegex(TypeError, "expected a plan: .* got None"):
            ferry.execute(None)
        with self.assertRaisesRegex(ValueError, 'other_shapes: expected "offload", "keep" or'):
            ferry.execute(self.plan, other_shapes="ignore")
        with self.assertRaisesRegex(ValueError, "other_shapes: expected a plan"):
            ferry.offload(other_shapes="keep")


class OfGuards(unittest.TestCase):
    def test_a_guard_under_which_nothing_is_saved_is_told_once(self):
        model, x = mlp()
        loss = loss_of(model(x))
        offload = ferry.offload()
        with told(self, "Put it around the forward"):
            for _ in range(2):
                with offload:
                    loss.backward(retain_graph=True)
        with told(self, r"not under torch\.no_grad\(\)"), torch.no_grad(), ferry.offload():
            model(x)
        with tempfile.TemporaryDirectory() as folder, told(self):
            offload = ferry.offload(disk=folder)
            step(model, x, offload)
            with torch.no_grad(), offload:  # an evaluation of a training
                model(x)

    def test_an_offload_is_of_one_process(self):
        for copied in (pickle.dumps, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, "to one process.*DataLoader's dataset"):
                copied(ferry.offload())

    def test_options_are_known_by_name(self):
        import inspect
        self.assertIn("window", inspect.signature(ferry.offload).parameters)


class OfPolicies(unittest.TestCase):
    def setUp(self):
        self.addCleanup(policies._tried.clear)
        policies._tried.clear()
        self.layer, self.x = nn.Linear(8, 8), torch.randn(4, 8, requires_grad=True)

    def kept(self, policy, around=None):
        """How many tensors a policy keeps in a Linear with a bias."""
        before = ferry.checkpoint_statistics().kept
        with around or contextlib.nullcontext():
            y = ferry.checkpoint(lambda x: self.layer(x).exp(), self.x, policy=policy)
        y.sum().backward()
        return ferry.checkpoint_statistics().kept - before

    def test_ops_by_any_name(self):
        want = {"aten::addmm": "save"}
        for name in ("addmm", "aten::addmm", "aten.addmm", "aten.addmm.default",
                     torch.ops.aten.addmm, torch.ops.aten.addmm.default):
            self.assertEqual(want, policies.understood([name]))
        self.assertEqual({"aten::add.Tensor": "save"}, policies.understood(["add.Tensor"]))
        with self.assertRaisesRegex(ValueError, "no operator 'aten::matmull'; did you mean "
                                    "'aten::matmul"):
            self.kept(["aten::matmull"])
        with self.assertRaisesRegex(TypeError, "the name of an operator or torch.ops"):
            self.kept([7])

    def test_choices_of_pytorchs_and_of_plans(self):
        from torch.utils.checkpoint import CheckpointPolicy as Theirs
        for choice, word in ((Theirs.MUST_SAVE, "save"), (Theirs.PREFER_SAVE, "save"),
                             (Theirs.MUST_CPU_OFFLOAD, "offload"), ("keep", "save"), (True, "save"),
                             (Theirs.PREFER_RECOMPUTE, "recompute"), (False, "recompute")):
            self.assertEqual({"aten::mm": word}, policies.understood({"mm": choice}))
        seen = []

        def of_function(op, index):
            seen.append((op, index))
            return Theirs.MUST_SAVE if op == "aten::addmm" else Theirs.PREFER_RECOMPUTE
        self.kept(of_function)
        self.assertIn(("aten::addmm", 0), seen)
        with self.assertRaisesRegex(ValueError, "got None for aten::"):
            self.kept(lambda op, index: None)
        with self.assertRaisesRegex(TypeError, "policy: expected a dict of operators"):
            self.kept(3)

    def test_an_op_that_never_ran_is_told_once(self):
        with told(self, "aten::mm did not run in this call, so nothing is done for it; "
                        "aten::addmm did"):
            self.kept({"aten::mm": "save"})
            self.kept({"aten::mm": "save"})
        with told(self):
            self.kept({"aten::addmm": "save"})

    def test_offload_without_a_guard_is_told(self):
        with told(self, "there is none: they are kept. Put `with torch_ferry.offload"):
            self.kept({"addmm": "offload"})
        policies._tried.clear()
        with told(self):
            self.kept({"addmm": "offload"}, around=ferry.offload())


if __name__ == "__main__":
    unittest.main()
