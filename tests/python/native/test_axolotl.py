"""Axolotl with our plugin, by its configuration: the weights of a training without."""

import os
import tempfile
import unittest

os.environ["AXOLOTL_DO_NOT_TRACK"] = "1"

from native.support import same, torch

try:
    import datasets
    import transformers
    from axolotl.cli.config import plugin_set_cfg, prepare_plugins
    from axolotl.core.builders.causal import HFCausalTrainerBuilder
    from axolotl.utils.config import validate_config
    from axolotl.utils.dict import DictDefault
except ImportError as error:
    raise unittest.SkipTest(f"no axolotl: {error}")

from native.hugging_face import TOKENS, WORDS, sample, words
from native.test_planning import planning

PLUGINS = ["torch_ferry.axolotl.OffloadPlugin"]


def llama():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=WORDS, bos_token_id=0, eos_token_id=0, pad_token_id=0))


def configured(folder, **more):
    """What a user's file says, read as Axolotl reads it."""
    read = DictDefault({
        "base_model": "none", "datasets": [{"path": "none", "type": "alpaca"}],
        "output_dir": folder, "sequence_len": TOKENS, "micro_batch_size": 2, "max_steps": 3,
        "gradient_accumulation_steps": 2, "learning_rate": 1e-3, "optimizer": "adamw_torch",
        "lr_scheduler": "constant", "val_set_size": 0, "bf16": False, "fp16": False, "tf32": False,
        "seed": 3, "use_cpu": True, "save_strategy": "no", "num_epochs": 1, **more})
    prepare_plugins(read)
    understood = validate_config(read)
    plugin_set_cfg(understood)
    return understood


class Plugin(unittest.TestCase):
    def trained(self, **more):
        """The Trainer that Axolotl made, and the weights."""
        with tempfile.TemporaryDirectory() as folder:
            builder = HFCausalTrainerBuilder(configured(folder, **more), llama(), words(), None)
            builder.train_dataset = datasets.Dataset.from_list(
                [{**sample(index), "attention_mask": [1] * TOKENS} for index in range(12)])
            trainer = builder.build(3)
            trainer.train()
        return trainer, [parameter.detach() for parameter in trainer.model.parameters()]

    def expect_plain(self, **ferry):
        """What the callback counted of a training with the plain weights, and its plan."""
        _, want = self.trained()
        trainer, got = self.trained(plugins=PLUGINS, **ferry)
        self.assertTrue(same(want, got))
        callback, = (each for each in trainer.callback_handler.callbacks
                     if type(each).__name__ == "OffloadCallback")
        counts = callback.offload.statistics()
        self.assertGreater(counts.offloaded_count, 0)
        self.assertTrue(callback.offload.empty())
        return counts, callback.plan

    def test_weights_are_the_same_bits(self):
        everything, _ = self.expect_plain()
        less, _ = self.expect_plain(ferry={"min_bytes": "16KiB"})
        self.assertLess(less.offloaded_count, everything.offloaded_count)

    @unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
    def test_a_card_in_the_configuration_is_planned_for(self):
        counts, plan = self.expect_plain(ferry={"card": "rtx4090", "policies": "offload"})
        self.assertEqual("offload", plan.policy)
        self.assertEqual(0, counts.other_forwards)


if __name__ == "__main__":
    unittest.main()
