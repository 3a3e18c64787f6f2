"""A plan in a Trainer with the defaults of transformers and TRL: the losses and weights of the
plain run to the bit, whichever way the plan was made, and the steps that it was not for are
counted."""

import functools
import os
import pathlib
import subprocess
import sys
import traceback
import unittest

from native.hugging_face import (SAMPLES, TOKENS, Failing, Folder, batch, gpt2, sample,
                                  torch)
from native.support import ferry

from torch_ferry.transformers import OffloadCallback, use_checkpoint
from native.test_planning import planning

CARD = "rtx4090"
SCRIPT = """
from native import hugging_face
class Training(hugging_face.Folder):
    def runTest(self):
        self.trainer(activation_checkpointing=True).train()
case = Training()
case.setUp()
case.runTest()
"""


def planned(model, inputs=None, **options):
    """By the model alone, under what the Trainer runs it under."""
    model.train()
    model.config.use_cache = False
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return ferry.plan(model, inputs or batch(), lambda output: output.loss,
                          **{"card": CARD, "policies": "offload", **options})


@functools.cache
def plan_of_model():
    return planned(gpt2())


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Plans(Folder):
    plain = {}  # of runs without a callback

    def expect_plain(self, callback, make="trainer", **more):
        """What the callback counted of a training whose losses and weights are the plain ones."""
        case = repr((make, more))
        if case not in self.plain:
            self.plain[case] = self.trained(getattr(self, make)(**more))
        trainer = getattr(self, make)(callback, **more)
        self.assert_same(self.plain[case], self.trained(trainer))
        self.assertNotIn("training_step", vars(trainer))
        self.assertTrue(callback.offload.empty())
        return callback.offload.statistics()

    def recomputes(self, before=0):
        return ferry.checkpoint_statistics().recomputes - before

    def test_of_the_model_with_a_last_batch_that_is_smaller(self):
        plan = plan_of_model()
        counts = self.expect_plain(OffloadCallback(plan=plan))
        self.assertEqual(1, counts.other_forwards)
        self.assertGreater(counts.offloaded_bytes, 5 * plan.row["offloaded_bytes"])
        self.assertRegex(str(counts), "; forwards that were not the plan's: 1$")
        counts = self.expect_plain(OffloadCallback(plan=plan, other_shapes="keep"))
        self.assertEqual(5 * plan.row["offloaded_bytes"], counts.offloaded_bytes)

    def test_that_runs_operators_again(self):
        tokens, size = 256, 4
        long = {"model": None, "data": [sample(each, tokens) for each in range(SAMPLES)],
                "per_device_train_batch_size": size, "eval_strategy": "no"}

        def model():
            return gpt2(n_positions=tokens)
        keep = planned(model(), batch(size, tokens), policies="keep", optimizer=None)
        plan = planned(model(), batch(size, tokens), policies="best", optimizer=None,
                       budget=keep.row["least_bytes"] * 9 // 10)
        self.assertIn('"spans"', plan.text)
        want = self.trained(self.trainer(**{**long, "model": model()}))
        before = ferry.replay_statistics().calls_replayed
        callback = OffloadCallback(plan=plan)
        got = self.trained(self.trainer(callback, **{**long, "model": model()}))
        self.assert_same(want, got, losses=1)
        self.assertGreater(ferry.replay_statistics().calls_replayed, before)
        self.assertEqual(1, callback.offload.statistics().other_forwards)
        self.assertTrue(callback.offload.empty())

    def test_of_the_trainers_own_step_with_its_checkpoints(self):
        for policies, again in (("checkpoint", 12), ("offload", 0)):  # 6 forwards, 2 layers
            before = self.recomputes()
            callback = OffloadCallback(card=CARD, policies=policies)
            counts = self.expect_plain(callback, activation_checkpointing=True)
            self.assertEqual(again, self.recomputes(before))
            self.assertEqual((1, policies), (counts.other_forwards, callback.plan.policy))

    def test_of_an_sft_trainers_own_step(self):
        callback = OffloadCallback(card=CARD, policies="checkpoint-offload")
        before = self.recomputes()
        counts = self.expect_plain(callback, "sft")
        self.assertEqual(12, self.recomputes(before))
        self.assertEqual(1, counts.other_forwards)
        self.assertGreater(counts.offloaded_bytes, 0)

    def test_that_is_made_while_it_trains(self):
        before = self.recomputes()
        callback = OffloadCallback(plan="auto", card=CARD, budget="1GiB", policies="checkpoint")
        self.expect_plain(callback, activation_checkpointing=True, num_train_epochs=2)
        self.assertEqual(24, self.recomputes(before))
        # The last batch of the second epoch is the second one of its size. Evaluation counts not.
        self.assertRegex(str(callback), r"^10 forwards, plan checkpoint,.* i64 \[2, 32\].*\n"
                                        r"2 forwards, plan checkpoint,.* i64 \[1, 32\][^\n]*$")

    def test_whose_memory_is_out_says_what_the_plan_has(self):
        trainer = self.trainer(OffloadCallback(plan=plan_of_model()))

        def loss(*_, **__):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        trainer.compute_loss = loss
        with self.assertRaisesRegex(torch.OutOfMemoryError, "^CUDA out of memory") as raised:
            trainer.train()
        said = "".join(traceback.format_exception(raised.exception))
        self.assertRegex(said, "torch_ferry: the plan offload has its peak at .* of parameters")

    def test_the_step_that_is_planned_is_none_that_is_counted(self):
        trainer = self.sft(OffloadCallback(card=CARD, policies="keep"), max_steps=1)
        trainer.train()
        self.assertEqual(2 * 2 * TOKENS, trainer._total_train_tokens)

    def test_of_the_script_by_a_file(self):
        path = self.captured()
        before = self.recomputes()
        counts = self.expect_plain(OffloadCallback(plan=path), activation_checkpointing=True)
        self.assertEqual(12, self.recomputes(before))
        self.assertEqual(1, counts.other_forwards)

    def captured(self):
        """The file of a plan, made as a user makes it: capture, and what that says to type."""
        folder = pathlib.Path(self.folder)
        (folder / "train.py").write_text(SCRIPT)
        here = str(pathlib.Path(__file__).resolve().parents[1])
        path = os.pathsep.join([os.environ["PYTHONPATH"], here])
        done = subprocess.run(
            [sys.executable, "-m", "torch_ferry.capture", "train.py", "--device", "cpu", "-o",
             "train.jsonl"], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path})
        self.assertEqual(0, done.returncode, done.stderr)
        told = done.stderr.partition("as the script trains: ferry ")[2].split()
        self.assertIn("fused", told)
        self.assertEqual(["--card", "CARD"], told[-2:])
        done = subprocess.run(
            [planning._PROGRAM, *told[:-1], CARD, "--policy", "checkpoint", "--no-modules",
             "-o", "train.plan"], cwd=folder, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: so small that nothing is saved
        return folder / "train.plan"

    def test_whose_batches_vary(self):
        """Lengths vary, or what is padded: the first batch has the plan's shape, or another one."""
        ids = [sample(each, TOKENS - each % 3)["input_ids"] for each in range(SAMPLES)]
        alone = [{"input_ids": each, "labels": each} for each in ids]
        padded = [{"input_ids": each + [0] * (TOKENS - len(each)),
                   "attention_mask": [1] * len(each) + [0] * (TOKENS - len(each)),
                   "labels": each + [-100] * (TOKENS - len(each))} for each in ids]
        counts = self.expect_plain(OffloadCallback(plan=plan_of_model()), data=alone,
                                   per_device_train_batch_size=1)
        self.assertEqual(SAMPLES, counts.other_forwards)
        whole = {"input_ids": ids[0], "attention_mask": [1] * TOKENS, "labels": ids[0]}
        counts = self.expect_plain(
            OffloadCallback(plan=plan_of_model()), data=[whole] * 4 + padded[1:],
            train_sampling_strategy="sequential")
        self.assertEqual(0, counts.other_forwards)  # a mask is no tensor that is saved

    def test_of_another_loss_than_the_trainers_says_what_plans_that(self):
        with self.assertRaisesRegex(ferry.PlanMismatch, r"(?s)planned: train mode, autocast to "
                                    r"bf16.*OffloadCallback\(card=…, budget=…\) plans that step"):
            self.sft(OffloadCallback(plan=plan_of_model())).train()

    def test_with_a_cache_says_that_a_trainer_has_none(self):
        model = gpt2().train()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            plan = ferry.plan(model, batch(), lambda output: output.loss, card=CARD,
                              policies="offload")
        with self.assertRaisesRegex(ferry.PlanMismatch, r"(?s)use_cache=True.*use_cache=False.*"
                                    r"model\.config\.use_cache = False before ferry\.plan"):
            self.trainer(OffloadCallback(plan=plan)).train()

    def test_another_shape_may_be_refused(self):
        with self.assertRaisesRegex(ferry.PlanMismatch, r"(?s)input_ids i64 \[2, 32\].*"
                                    r"input_ids i64 \[1, 32\].*other_shapes=\"offload\""):
            self.trainer(OffloadCallback(card=CARD, policies="offload",
                                         other_shapes="raise")).train()


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Callbacks(Folder):
    def state(self, *callbacks):
        """Of a model whose training failed: what is on its parts, and the plan of it."""
        data = Failing(sample(each) for each in range(SAMPLES))
        trainer = self.trainer(*callbacks, data=data)
        with self.assertRaisesRegex(ValueError, "no such sample"):
            trainer.train()
        return planned(trainer.model).text, [
            [name, *vars(part), *part._forward_hooks, *part._forward_pre_hooks]
            for name, part in trainer.model.named_modules()]

    def test_a_training_that_failed_leaves_the_model_as_it_was(self):
        want = self.state()
        self.assertEqual(want, self.state(OffloadCallback()))
        self.assertEqual(want, self.state(OffloadCallback(plan=plan_of_model())))

    def test_what_contradicts_is_refused(self):
        for wrong, said in (({"plan": "x", "card": "y"}, r"plan= .* or card= .*; got both"),
                            ({"plan": "x", "keep_head": True}, "keep_head: a plan decides"),
                            ({"budget": "1GiB"}, "budget: expected card="),
                            ({"other_shapes": "keep"}, "other_shapes: expected a plan"),
                            ({"plans_max": 2}, 'plans_max: expected plan="auto"'),
                            ({"plan": "auto", "other_shapes": "keep"}, "remove other_shapes"),
                            ({"plan": "auto", "card": CARD, "budget": 1 << 30, "keep_head": True},
                             "keep_head: a plan decides")):
            with self.assertRaisesRegex(TypeError, said):
                OffloadCallback(**wrong)

    def test_what_is_wrong_is_told_before_a_training_begins(self):
        for wrong, said in (({"card": "4090"}, "did you mean 'rtx4090'"),
                            ({"card": CARD, "budget": "20 apples"}, "^budget: expected a size"),
                            ({"card": CARD, "policies": "bset"}, "did you mean 'best'"),
                            ({"plan": "auto", "card": CARD}, "^no GPU .*: expected budget="),
                            ({"card": CARD, "hold": "20 apples"}, "^hold: expected a size")):
            with self.assertRaisesRegex(ValueError, said):
                OffloadCallback(**wrong)


class Checkpoints(Folder):
    def test_of_hugging_face_call_ours_and_are_theirs_again(self):
        tokens = batch()
        for enabled in (False, True):
            model = gpt2()
            if enabled:
                model.activation_checkpointing_enable()
            end = use_checkpoint(model)
            if not enabled:
                model.activation_checkpointing_enable({"use_reentrant": False})
            model.train()
            before = ferry.checkpoint_statistics().recomputes
            model(**tokens).loss.backward()
            self.assertEqual(2, ferry.checkpoint_statistics().recomputes - before)
            end()
            model(**tokens).loss.backward()
            self.assertEqual(2, ferry.checkpoint_statistics().recomputes - before)

    def test_where_there_are_none_it_says_so(self):
        with self.assertRaisesRegex(ValueError, "Linear has no gradient checkpointing"):
            use_checkpoint(torch.nn.Linear(2, 2))
        model = gpt2()
        model.activation_checkpointing_enable(offload=True)
        with self.assertRaisesRegex(ValueError, "leave offload=True out"):
            use_checkpoint(model)

    @unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
    def test_a_plan_says_what_to_call(self):
        model = gpt2().train()
        model.activation_checkpointing_enable()
        from torch_ferry.capture import CaptureError
        with self.assertRaisesRegex(CaptureError, r"transformers\.use_checkpoint\(model\)"):
            planned(model)
        use_checkpoint(model)
        self.assertEqual("checkpoint", planned(model, policies="checkpoint").policy)


if __name__ == "__main__":
    unittest.main()
