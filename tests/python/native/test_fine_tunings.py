"""The two smallest fine-tunings of the campaign's (campaign/fine_tunings), and what broke in the
larger ones."""

import copy
import unittest

from native.hugging_face import Folder, batch, gpt2, torch, transformers
from native.support import ferry
from native.test_planning import planning

from campaign.fine_tunings.faults import difference, faults_of_offload, faults_of_plan
from campaign.fine_tunings.runs import BY_HAND, CARD, run
from torch_ferry.transformers import OffloadCallback, use_checkpoint

SMALLEST = ("Trainer, causal LM", BY_HAND)


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Smallest(unittest.TestCase):
    def test_are_the_same_bits_and_do_what_the_plan_says(self):
        for name in SMALLEST:
            with self.subTest(name):
                kept = run(name)
                got = run(name, {})
                self.assertEqual([], difference(kept, got))
                self.assertEqual([], list(faults_of_offload(got)))
                options = {"card": CARD, "budget": "32MiB",
                           "policies": ("keep", "checkpoint-offload")}
                got = run(name, options, checkpoints=True)
                self.assertEqual([], difference(kept, got))
                self.assertEqual([], got.watch.faults)
                self.assertEqual([], list(faults_of_plan(got.plan, kept, got)))
        self.expect_faults(kept, got)

    def expect_faults(self, kept, got):
        """Of what was not as it is."""
        def faults(change):
            changed = copy.copy(got)
            changed.watch = copy.copy(got.watch)
            changed.watch.forwards = copy.deepcopy(got.watch.forwards)
            change(changed.watch.forwards)
            return list(faults_of_plan(got.plan, kept, changed))

        def held(forwards):
            forwards[4].held = kept.watch.forwards[4].held
        for change, said in (
                (lambda forwards: vars(forwards[1]).update(moved=7), "forward 1 moved 7 B, 4 segm"),
                (lambda forwards: vars(forwards[1]).update(recomputes=3), "3 segments and 0 spans"),
                (lambda forwards: vars(forwards[1]).update(others=1), "counts as 1 of other"),
                (lambda forwards: vars(forwards[5]).update(others=0), "counts as 0 of other"),
                (held, "forward 4 holds")):
            self.assertRegex("\n".join(faults(change)), said)
        other = copy.copy(got)
        other.losses = got.losses[1:]
        self.assertEqual(1, len(difference(kept, other)))
        other.losses, other.weights = got.losses, {**got.weights}
        name = next(iter(other.weights))
        other.weights[name] = other.weights[name] + 1
        self.assertEqual([f"1 weights differ, {name} first"],
                         difference(kept, other))


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Larger(Folder):
    def test_a_batch_that_a_tokenizer_makes(self):
        """Of DataCollatorWithPadding, say. PyTorch's trees do not look into it, and its tensors
        stayed real, beside fake ones."""
        def collated(samples):
            return transformers.BatchEncoding(transformers.default_data_collator(samples))
        callback = OffloadCallback(card="rtx4090", policies="offload")
        want = self.trained(self.trainer(collated=collated))
        got = self.trained(self.trainer(callback, collated=collated))
        self.assert_same(want, got)
        self.assertIn("input_ids i64 [2, 32]", callback.plan.conditions.inputs)
        self.assertEqual(1, callback.offload.statistics().other_forwards)

    def test_a_frozen_model_with_adapters_under_checkpoints(self):
        """The embeddings' output is a leaf there, as PEFT and transformers make it. What the first
        layer saves of it was no part of a plan, for its gradient went nowhere."""
        tokens = batch()

        def adapted():
            model = gpt2().train()
            model.requires_grad_(False)
            for block in model.transformer.h:
                block.mlp.c_fc.bias.requires_grad_(True)
            model.enable_input_require_grads()
            use_checkpoint(model)
            model.activation_checkpointing_enable()
            return model

        def gradients(model, guard):
            torch.manual_seed(1)
            with guard:
                loss = model(**tokens).loss
            loss.backward()
            return [each.grad for each in model.parameters() if each.grad is not None]

        want = gradients(adapted(), ferry.offload())
        self.assertEqual(2, len(want))
        for policy in ("keep", "offload", "checkpoint", "checkpoint-offload"):
            model = adapted()
            model.config.use_cache = False
            plan = ferry.plan(model, tokens, lambda output: output.loss, card="rtx4090",
                              policies=policy)
            got = gradients(model, ferry.execute(plan))
            self.assertTrue(all(map(torch.equal, want, got)), policy)


if __name__ == "__main__":
    unittest.main()
