"""Trains a small language model with TRL's own trainers and prints the peaks of its memory.

    ferry run tuned.py sft|dpo [--lora RANK]

As trained.py, but with values, because TRL selects the positions that have labels. The Triton
kernels of TRL's output head are stood in for, as captures do (`torch_ferry.trl_steps`): they
allocate nothing, and the emulated GPU cannot run them. Everything else is TRL's and PEFT's.
"""

import argparse
import json
import logging
import pathlib
import sys
import tempfile
from unittest import mock

import torch
import transformers
from datasets import Dataset, disable_progress_bars
from tokenizers import Tokenizer, models
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
from trl.kernels import chunked_logprob

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from campaign.by_name.others import SMALL

STEPS = 3
TOKENS, BATCH, CONFIGURATION = SMALL


class Fold:
    def __getitem__(self, _):
        return lambda tile, *args, **kwargs: tile.neg_()


def _tokenizer():
    words = {"<end>": 0, "<unknown>": 1} | {f"w{i}": i + 2 for i in range(62)}
    made = Tokenizer(models.WordLevel(words, unk_token="<unknown>"))
    from tokenizers.pre_tokenizers import Whitespace

    made.pre_tokenizer = Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>",
                                                pad_token="<end>")


def _model():
    config = transformers.LlamaConfig.from_dict(CONFIGURATION)
    return transformers.LlamaForCausalLM._from_config(config, dtype=torch.bfloat16)


def train(which, rank):
    count = STEPS * BATCH
    # A sequence has TOKENS tokens: for DPO one of the prompt, and one of the end.
    said = " ".join(["w7"] * (TOKENS - 2))
    examples = {"input_ids": [[5] * TOKENS] * count} if which == "sft" else {
        "prompt": ["w3"] * count, "chosen": [" " + said] * count, "rejected": [" " + said] * count}
    kind, given = {"sft": (SFTTrainer, SFTConfig), "dpo": (DPOTrainer, DPOConfig)}[which]
    adapters = None
    if rank:
        from peft import LoraConfig

        adapters = LoraConfig(r=rank, lora_alpha=32, target_modules="all-linear", lora_dropout=0.0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = given(folder, max_steps=STEPS, per_device_train_batch_size=BATCH,
                          save_strategy="no", report_to=[], logging_strategy="no",
                          disable_tqdm=True, max_length=TOKENS)
        more = {} if which == "sft" or rank else {"ref_model": _model()}
        kind(_model(), args=arguments, train_dataset=Dataset.from_dict(examples),
             processing_class=_tokenizer(), peft_config=adapters, **more).train()
    return {"allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("which", choices=("sft", "dpo"))
    parser.add_argument("--lora", type=int)
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    disable_progress_bars()
    with mock.patch.multiple(chunked_logprob, _forward_kernel=Fold(), _backward_kernel=Fold()):
        print(json.dumps(train(options.which, options.lora)))
