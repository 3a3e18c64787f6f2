"""ferry.plan: a step is captured and planned, and what comes back is executed as it says."""

import importlib
import json
import os
import pathlib
import pickle
import signal
import subprocess
import tempfile
import unittest
from unittest import mock

from native.support import ferry, mlp, same, step, torch
from torch import nn
from torch_ferry import capture
from torch.nn import functional

planning = importlib.import_module("torch_ferry.plan")


def loss_of(output):
    return output.pow(2).mean()


class Blocks(nn.Module):
    """Alike, and each a call of ferry.checkpoint."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 64))
            for _ in range(4))

    def forward(self, x):
        for part in self.parts:
            x = x + ferry.checkpoint(part, x)
        return x


def blocks():
    torch.manual_seed(6)
    return Blocks(), torch.randn(256, 64)


class Attention(nn.Module):
    """What saves one set of tensors on a CPU and another on a GPU."""

    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.drop = nn.LayerNorm(64), nn.Linear(64, 192), nn.Dropout(0.1)

    def forward(self, x):
        heads = [part.unflatten(-1, (4, 16)).transpose(1, 2)
                 for part in self.qkv(self.norm(x)).chunk(3, -1)]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.drop(mixed.transpose(1, 2).flatten(2))


def attention():
    torch.manual_seed(4)
    return nn.Sequential(Attention(), Attention(), Attention()), torch.randn(8, 64, 64)


def wide():
    return mlp(256, 12)[0], torch.randn(4096, 256)


def planned(model, x, **options):
    return ferry.plan(model, x, loss_of, **{"card": "rtx4090", "policies": ["offload"], **options})


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Planning(unittest.TestCase):
    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def moved(self, plan):
        """The storages that a plan moves."""
        return {entry["group"] for entry in json.loads(plan.text)["entries"]
                if entry["decision"] == "offload"}

    def test_what_was_planned_is_what_is_moved_and_the_bits_are_the_same(self):
        for make in (mlp, attention):
            with self.subTest(model=make.__name__):
                model, x = make()
                want = step(model, x, ferry.no_offload())
                plan = planned(model, x)
                offload = ferry.execute(plan)
                for _ in range(3):
                    self.assertTrue(same(want, step(model, x, offload)))
                    counts = offload.step_statistics()
                    self.assertEqual(len(self.moved(plan)), counts.offloaded_count)
                    self.assertEqual(plan.row["offloaded_bytes"], counts.offloaded_bytes)
                self.assertGreater(counts.offloaded_count, 2)
                self.assertTrue(offload.empty())

    def test_a_plan_recomputes_operators_of_a_model_that_nobody_edited(self):
        for make in (wide, lambda: (attention()[0], torch.randn(64, 128, 64))):
            model, x = make()
            want = step(model, x, ferry.no_offload())
            keep = planned(model, x, policies=["keep"]).row["least_bytes"]
            plan = planned(model, x, policies=["best"], budget=keep * 8 // 10)
            made = json.loads(plan.text)
            self.assertNotIn("segments", made)
            again = sum(span["last"] - span["first"] + 1 - len(span.get("keep", []))
                        for span in made["spans"])
            offload = ferry.execute(plan)
            for _ in range(3):
                before = ferry.replay_statistics()
                self.assertTrue(same(want, step(model, x, offload)))
                now = ferry.replay_statistics()
                self.assertEqual(len(made["spans"]), now.spans - before.spans)
                self.assertGreater(now.calls_replayed, before.calls_replayed)
                self.assertLessEqual(now.calls_replayed - before.calls_replayed, again)
                self.assertEqual(0, now.alive)
            self.assertTrue(offload.empty())

    def test_what_goes_wrong_under_a_plan_of_operators_leaves_nothing(self):
        model, x = wide()
        want = step(model, x, ferry.no_offload())
        keep = planned(model, x, policies=["keep"]).row["least_bytes"]
        offload = ferry.execute(planned(model, x, policies=["best"], budget=keep * 8 // 10))
        with self.assertRaises(ferry.PlanMismatch):  # another model
            step(nn.Sequential(*list(model)[:9]), x, offload)
            step(model, x, offload)
        with self.assertRaises(ZeroDivisionError), offload:
            model[:7](x)
            _ = 1 // 0
        self.assertTrue(same(want, step(model, x, offload)))
        self.assertEqual(0, ferry.replay_statistics().alive)
        self.assertTrue(offload.empty())

    def test_a_plan_recomputes_the_calls_of_checkpoint_that_it_names(self):
        model, x = blocks()
        want = step(model, x, ferry.no_offload())
        fewest = ferry.plan(model, x, loss_of, card="rtx4090").row["device_peak_bytes"]
        recomputed = set()
        for policy in planning.RECOMPUTING:
            with self.subTest(policy=policy):
                plan = planned(model, x, policies=[policy], budget=fewest * 4)
                segments = [each["recompute"] for each in json.loads(plan.text).get("segments", [])]
                before = ferry.checkpoint_statistics().recomputes
                for _ in range(2):
                    self.assertTrue(same(want, step(model, x, ferry.execute(plan))))
                runs = ferry.checkpoint_statistics().recomputes - before
                self.assertEqual(2 * sum(segments), runs)
                recomputed.add(sum(segments))
        self.assertIn(4, recomputed)

    def test_a_model_without_such_calls_is_not_planned_with_them(self):
        model, x = mlp()
        with self.assertRaisesRegex(ValueError, "'mixed' recomputes calls of torch_ferry.checkpoint"
                                    ", and the model makes none"):
            planned(model, x, policies=["keep", "mixed"])

    def test_one_for_a_gpu_is_refused_on_a_cpu(self):
        model, x = attention()
        with self.assertRaisesRegex(ferry.PlanMismatch, "saved tensor"):
            step(model, x, ferry.execute(planned(model, x, device="cuda")))

    def test_the_model_and_the_random_numbers_stay_as_they_are(self):
        torch.manual_seed(5)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5))
        model[1].eval()
        x = torch.randn(2, 3, 8, 8)
        loss_of(model(x)).backward()
        gradients = [parameter.grad for parameter in model.parameters()]

        def state():
            return [each.clone() for each in [*model.state_dict().values(), *gradients,
                                              torch.get_rng_state()]]

        def parts():
            return [(name, part.training, len(part._forward_hooks), len(part._forward_pre_hooks))
                    for name, part in model.named_modules()]
        before, parts_before = state(), parts()
        planned(model, x)
        self.assertTrue(same(before, state()))
        self.assertEqual(parts_before, parts())
        for parameter, gradient in zip(model.parameters(), gradients):
            self.assertIs(gradient, parameter.grad)

    def test_arguments_by_name_and_a_budget(self):
        class Model(nn.Linear):
            def forward(self, *, tokens):
                return super().forward(tokens).tanh().exp()
        model = Model(256, 256)
        plan = ferry.plan(model, {"tokens": torch.randn(4096, 256)}, loss_of, card="h100",
                          budget="128MiB", optimizer="adamw", name="mine")
        self.assertEqual(("mine", "h100", 128 << 20), (plan.program, plan.card, plan.budget))
        self.assertRegex(plan.answer, "^Use keep, the training as it is: .* a step, in ")
        self.assertEqual(["keep", "offload", "best"], [row["policy"] for row in plan.rows])
        self.assertTrue(plan.row["fits"])

    def test_all_policies_are_those_that_the_model_can_have(self):
        for make, want in ((mlp, planning.POLICIES),
                           (blocks, planning.POLICIES + planning.RECOMPUTING)):
            plan = planned(*make(), policies="all")
            self.assertEqual(sorted(want), sorted(row["policy"] for row in plan.rows))

    def test_a_saved_one_and_a_pickled_one_are_the_plan(self):
        model, x = mlp(width=128)
        want = step(model, x, ferry.no_offload())
        plan = planned(model, x)
        path = self.folder() / "mine.plan"
        plan.save(path)
        for each in (path, str(path), pickle.loads(pickle.dumps(plan))):
            offload = ferry.execute(each)
            self.assertTrue(same(want, step(model, x, offload)))
            self.assertEqual(len(self.moved(plan)), offload.statistics().offloaded_count)

    def test_the_table_is_the_commands(self):
        model, x = mlp()
        name = '<img src="x">'
        plan = planned(model, x, policies=planning.POLICIES, name=name)
        program = self.folder() / "step.jsonl"
        capture.capture(model, (x,), loss_of, name=name, device="cpu").write(program)
        table = subprocess.run(
            [planning._PROGRAM, "plan", program, "--card", "rtx4090", "--no-modules",
             "--policy", ",".join(planning.POLICIES), "--optimizer-implementation", "fused"],
            capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in table.splitlines()]
        at = next(at for at, row in enumerate(rows) if row[:1] == ["policy"])
        mine = [line.split() for line in str(plan).splitlines()]
        self.assertEqual(rows[at:at + 6], mine[2:8])
        self.assertEqual([f"planned: {plan.policy}", plan.answer], str(plan).splitlines()[-2:])
        page = plan._repr_html_()
        self.assertNotIn("<img", page)
        self.assertEqual(1, page.count(f"<td><b>{plan.policy}</b></td>"))

    def test_numbers_are_written_as_the_command_writes_them(self):
        for count, text in ((0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (10239, "10.00 KiB"),
                            (10240, "10.0 KiB"), (1 << 20, "1.00 MiB"), (100 << 30, "100 GiB")):
            self.assertEqual(text, planning._bytes(count))
        self.assertEqual("999 ns", planning._time(999))
        self.assertEqual("1.05 ms", planning._time(1_049_999))


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Refused(unittest.TestCase):
    def setUp(self):
        self.model, self.x = mlp()

    def test_a_card_that_there_is_none_of_before_anything_is_captured(self):
        def never(_):
            raise AssertionError("captured")
        with self.assertRaisesRegex(ValueError, "^rtx409: expected .*did you mean 'rtx4090'"):
            ferry.plan(self.model, self.x, never, card="rtx409")
        with self.assertRaisesRegex(ValueError, "^--h: expected"):
            ferry.plan(self.model, self.x, never, card="--h")

    def test_a_budget_or_a_policy_that_is_none(self):
        for wrong in ("20 apples", "-1", 0):
            with self.assertRaisesRegex(ValueError, "^budget: expected"):
                planned(self.model, self.x, budget=wrong)
        with self.assertRaisesRegex(ValueError, "offlaod.*did you mean 'offload'"):
            planned(self.model, self.x, policies=["offlaod"])

    def test_a_budget_that_nothing_fits_in_says_what_needs_least(self):
        with self.assertRaisesRegex(ferry.DoesNotFit, "Nothing fits in 1.00 MiB. .* the least of"
                                    ) as refused:
            planned(self.model, self.x, budget="1MiB", policies=planning.POLICIES)
        least = refused.exception.plan
        self.assertEqual(least.row["device_reserved_bytes"],
                         min(row["device_reserved_bytes"] for row in least.rows))
        want = step(self.model, self.x, ferry.no_offload())
        self.assertTrue(same(want, step(self.model, self.x, ferry.execute(least))))

    def test_a_step_that_cannot_be_captured(self):
        from torch_ferry.capture import CaptureError
        with self.assertRaisesRegex(CaptureError, "expected the loss function to return"):
            ferry.plan(self.model, self.x, lambda output: output, card="a100")

    def test_a_policys_old_name_works_and_says_the_new_one(self):
        model, x = mlp()
        with self.assertWarnsRegex(FutureWarning, "policy 'budget' is called 'offload-some' now"):
            plan = ferry.plan(model, x, loss_of, card="rtx4090", policies=["keep", "budget"])
        self.assertEqual(["keep", "offload-some"], [row["policy"] for row in plan.rows])

    def test_a_value_that_is_not_known_can_be_assumed(self):
        def loss(output):
            weight = output.sum().item()
            return output.pow(2).mean() * (1 + weight * 0)

        model, x = mlp()
        with self.assertRaisesRegex(capture.CaptureError, r'or with assume=\["zeros"\] if'):
            ferry.plan(model, x, loss, card="rtx4090", policies="keep")
        plan = ferry.plan(model, x, loss, card="rtx4090", policies="keep", assume=["zeros"])
        self.assertTrue(plan.row["fits"])

    def test_checkpoints_of_pytorchs_are_refused(self):
        from torch.utils.checkpoint import checkpoint
        from torch_ferry.capture import CaptureError

        class Net(torch.nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def forward(self, x):
                return checkpoint(self.inner, x, use_reentrant=False)
        with self.assertRaisesRegex(CaptureError, "torch_ferry.checkpoint in its place"):
            planned(Net(self.model), self.x)

    def test_a_package_without_the_command_says_so(self):
        with mock.patch.object(planning, "_PROGRAM", pathlib.Path("/nowhere/ferry")):
            with self.assertRaisesRegex(RuntimeError, "there is no command `ferry` in this"):
                planned(self.model, self.x)


class Stopped(unittest.TestCase):
    def test_ctrl_c_ends_the_command_and_leaves_no_file(self):
        model, x = mlp()
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            # It plans for ever, having pressed Ctrl-C for us: once somebody has read more from its
            # pipe than that holds, for by then Python has started it.
            program, temporary = folder / "ferry", folder / "temporary"
            card = '{"hardware": [{"compute_capability": 89}]}'
            program.write_text(f"#!/bin/sh\n[ $1 = plan ] || {{ echo '{card}'; exit 0; }}\n"
                               f"echo $$ >{folder}/pid\nhead -c 1000000 /dev/zero\n"
                               "kill -INT $PPID\nexec sleep 1000\n")
            program.chmod(0o755)
            temporary.mkdir()
            with mock.patch.object(planning, "_PROGRAM", program), \
                    mock.patch.object(tempfile, "tempdir", str(temporary)):
                before = signal.signal(signal.SIGINT, signal.default_int_handler)
                try:
                    with self.assertRaises(KeyboardInterrupt):
                        planned(model, x)
                finally:
                    signal.signal(signal.SIGINT, before)
            # PyTorch's compiler may have made an empty folder there.
            self.assertEqual([], [left for left in temporary.rglob("*") if not left.is_dir()])
            with self.assertRaises(ProcessLookupError):
                os.kill(int((folder / "pid").read_text()), 0)
        self.assertEqual({None}, {parameter.grad for parameter in model.parameters()})


if __name__ == "__main__":
    unittest.main()
