"""Trains a configuration with the library's own Trainer and prints the peaks of its memory.

    ferry run --no-values --zeros trained.py NAME

It uses nothing of Ferry's Python package, so it is what a user would write: the model that the
configuration names, a data set of examples of one length, and TrainingArguments with its defaults
besides three steps. Weights are not initialised, which takes minutes and no memory of the card.
"""

import json
import logging
import pathlib
import sys
import tempfile

import torch
import transformers
from torch.utils.data import Dataset
from transformers.initialization import no_init_weights
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from campaign.by_name.decoders import DECODERS
from campaign.by_name.others import OTHERS

STEPS = 3


class Examples(Dataset):
    """Tokens with labels, or pixels with the number of a class."""

    def __init__(self, config, kind, size, count, dtype):
        if kind.endswith("ForImageClassification"):
            pixels = torch.zeros(config.num_channels, size, size, dtype=dtype)
            self.example = {"pixel_values": pixels, "labels": 0}
        else:
            tokens = torch.zeros(size, dtype=torch.int64)
            self.example = {"input_ids": tokens, "labels": tokens,
                            "attention_mask": torch.ones(size, dtype=torch.int64)}
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, _):
        return self.example


def train(size, batch, contents):
    config = CONFIG_MAPPING[contents["model_type"]].from_dict(contents)
    config.use_cache = False
    dtype = config.dtype or torch.float32
    kind = contents["architectures"][0]
    with no_init_weights():
        model = getattr(transformers, kind)._from_config(config, dtype=dtype)
    model.tie_weights()  # which init_weights does
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=STEPS, per_device_train_batch_size=batch, save_strategy="no",
            report_to=[], logging_strategy="no", disable_tqdm=True)
        examples = Examples(config, kind, size, STEPS * batch, dtype)
        transformers.Trainer(model, arguments, train_dataset=examples).train()
    return {"allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved()}


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    print(json.dumps(train(*{**DECODERS, **OTHERS}[sys.argv[1]])))
