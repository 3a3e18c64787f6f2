"""A tiny training as transformers and TRL have it by default: bf16, fused AdamW, accumulated
gradients, a last batch that is smaller, evaluation between steps."""

import importlib.machinery
import os
import sys
import tempfile
import types
import unittest

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

from native.support import torch

try:
    import accelerate  # noqa: F401  which the Trainer asks for
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"no transformers: {error}")

SAMPLES, BATCH, TOKENS, WORDS = 11, 2, 32, 128


def gpt2(**options):
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**{
        "n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": WORDS, "n_positions": TOKENS,
        "bos_token_id": 0, "eos_token_id": 0, "loss_type": "ForCausalLM", **options}))


def sample(index, tokens=TOKENS):
    ids = [(index * 7 + at) % WORDS for at in range(tokens)]
    return {"input_ids": ids, "labels": ids}


def batch(size=BATCH, tokens=TOKENS):
    """What the default collator makes of samples."""
    return transformers.default_data_collator([sample(index, tokens) for index in range(size)])


class Failing(list):
    """Samples, the sixth of which cannot be read."""

    def __getitem__(self, index):
        if index == 5:
            raise ValueError("no such sample")
        return super().__getitem__(index)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def arguments(self, kind=transformers.TrainingArguments, **more):
        return kind(**{"output_dir": self.folder, "use_cpu": True, "bf16": True, "seed": 3,
                       "gradient_accumulation_steps": 2, "num_train_epochs": 1,
                       "per_device_train_batch_size": BATCH, "report_to": [],
                       "save_strategy": "no", "logging_steps": 1, "eval_strategy": "steps",
                       "eval_steps": 2, "disable_tqdm": True, **more})

    def trainer(self, *callbacks, model=None, data=None, collated=None, **more):
        data = data or [sample(index) for index in range(SAMPLES)]
        trainer = transformers.Trainer(
            model=gpt2() if model is None else model, args=self.arguments(**more),
            train_dataset=data, eval_dataset=[sample(0)], data_collator=collated,
            callbacks=list(callbacks))
        trainer.remove_callback(transformers.PrinterCallback)
        return trainer

    def sft(self, *callbacks, **more):
        """TRL's, whose defaults are bf16, gradient checkpointing, and a loss of its own."""
        trl = trls()
        data = trl.samples([sample(index) for index in range(SAMPLES)])
        trainer = trl.SFTTrainer(
            model=gpt2(), processing_class=words(), train_dataset=data, eval_dataset=data,
            callbacks=list(callbacks), args=self.arguments(
                trl.SFTConfig, max_length=TOKENS, remove_unused_columns=False,
                dataset_kwargs={"skip_prepare_dataset": True}, **more))
        trainer.remove_callback(transformers.PrinterCallback)
        return trainer

    def trained(self, trainer):
        """The losses that were logged, and the weights at the end."""
        trainer.train()
        losses = [line[key] for line in trainer.state.log_history for key in ("loss", "eval_loss")
                  if key in line]
        return losses, [parameter.detach().clone() for parameter in trainer.model.parameters()]

    def assert_same(self, want, got, losses=4):
        self.assertEqual(want[0], got[0])
        self.assertGreaterEqual(len(want[0]), losses)
        self.assertTrue(all(map(torch.equal, want[1], got[1])))


def words():
    from tokenizers import Tokenizer, models
    known = {"<end>": 0, "<unknown>": 1} | {f"word{at}": at + 2 for at in range(WORDS - 2)}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(known, unk_token="<unknown>")),
        eos_token="<end>", pad_token="<end>")


class _Anything(types.ModuleType):
    """A module that has every name, as an empty class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {})
        setattr(self, name, made)
        return made


def trls():
    """TRL, with `samples` to make a data set of a list.

    TRL's trainers import packages for data, of which samples with tokens need nothing but names:
    where they are not installed, empty classes stand for them."""
    for name in ("datasets", "pyarrow", "pyarrow.compute", "pyarrow.types", "pandas"):
        try:
            importlib.import_module(name)
        except ImportError:
            module = sys.modules[name] = _Anything(name)
            module.__spec__, module.__path__ = importlib.machinery.ModuleSpec(name, None), []
            head, _, tail = name.rpartition(".")
            if head:
                setattr(sys.modules[head], tail, module)
    import datasets
    try:
        import trl
    except ImportError as error:
        raise unittest.SkipTest(f"no trl: {error}")

    class Samples(list, datasets.Dataset):
        column_names, features, cache_files = ["input_ids", "labels"], {}, []

    samples = getattr(datasets.Dataset, "from_list", Samples)
    return types.SimpleNamespace(SFTTrainer=trl.SFTTrainer, SFTConfig=trl.SFTConfig,
                                 samples=samples)
