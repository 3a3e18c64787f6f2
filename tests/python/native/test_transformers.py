"""Hugging Face's Trainer with our callback: the same weights, and the model as it was."""

import tempfile
import unittest

from native.support import ferry, torch

try:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
    import accelerate  # noqa: F401  which the Trainer asks for
except ImportError as error:
    raise unittest.SkipTest(f"no transformers: {error}")

from torch_ferry.transformers import OffloadCallback


def gpt2():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=256,
                                      n_positions=32, attn_implementation="eager"))


class Data(torch.utils.data.Dataset):
    def __init__(self, fail_at=None):
        self.fail_at = fail_at

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == self.fail_at:
            raise ValueError("no such sample")
        tokens = torch.arange(32).add(index).remainder(256)
        return {"input_ids": tokens, "labels": tokens}


class Callback(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def trainer(self, callbacks, data=None, **arguments):
        """Three optimiser steps, each of two accumulated forwards and backwards."""
        given = TrainingArguments(
            output_dir=self.folder, use_cpu=True, max_steps=3, gradient_accumulation_steps=2,
            per_device_train_batch_size=2, report_to=[], save_strategy="no", logging_steps=100,
            disable_tqdm=True, seed=3, **arguments)
        return Trainer(model=gpt2(), args=given, train_dataset=data or Data(),
                       eval_dataset=Data(), callbacks=callbacks)

    def hooks(self, model):
        return sum(len(part._forward_hooks) + len(part._forward_pre_hooks)
                   for part in model.modules())

    def test_weights_are_the_same_bits(self):
        for more in ({}, {"gradient_checkpointing": True}):
            with self.subTest(**more):
                want = self.trainer([], **more)
                want.train()
                callback = OffloadCallback(window="64KiB", min_bytes=4096)
                got = self.trainer([callback], **more)
                got.train()
                for one, other in zip(want.model.parameters(), got.model.parameters()):
                    self.assertTrue(torch.equal(one, other))
                self.assertEqual(self.hooks(want.model), self.hooks(got.model))
                counts = callback.offload.statistics()
                self.assertGreater(counts.offloaded_count, 0)
                self.assertTrue(callback.offload.empty())

    def test_each_forward_that_trains_is_a_run_and_no_other(self):
        callback = OffloadCallback(decisions=True)
        self.trainer([callback], eval_strategy="steps", eval_steps=1).train()
        runs = {line.split('"run":')[1].split(",")[0]
                for line in callback.offload.take_decisions().splitlines() if '"run":' in line}
        self.assertEqual({str(run) for run in range(1, 7)}, runs)

    def test_a_train_that_raised_leaves_a_callback_that_serves_the_next(self):
        callback = OffloadCallback(min_bytes=0)
        failing = self.trainer([callback], data=Data(fail_at=5))
        with self.assertRaisesRegex(ValueError, "no such sample"):
            failing.train()
        failing.train_dataset = Data()
        before = callback.offload.statistics().packs
        failing.train()
        self.assertGreater(callback.offload.statistics().packs, before)
        self.assertEqual(0, self.hooks(failing.model))
        self.assertTrue(callback.offload.empty())

    def test_an_offload_of_ones_own(self):
        offload = ferry.offload(window=0)
        self.trainer([OffloadCallback(offload=offload)]).train()
        self.assertGreater(offload.statistics().offloaded_count, 0)
        with self.assertRaisesRegex(TypeError, "window cannot be given beside it"):
            OffloadCallback(offload=offload, window=0)


if __name__ == "__main__":
    unittest.main()
