"""TRL's SFTTrainer with our context in the place of TRL's: the weights of three optimiser steps, of
two accumulated forwards and backwards each, with dropout, are those of a run without, to the bit.

Hugging Face's Trainer with our callback is in native/test_transformers.py.
"""

import tempfile

import torch
from tokenizers import Tokenizer, models
from transformers import (GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast,
                          PrinterCallback)

from campaign.bits import same
from torch_ferry.trl import get_act_offloading_ctx_manager

VOCABULARY = {"<end>": 0, "<unknown>": 1} | {f"word{i}": i + 2 for i in range(126)}


def _trainer(folder):
    from datasets import Dataset, disable_progress_bars
    from trl import SFTConfig, SFTTrainer
    disable_progress_bars()
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=64, n_positions=32,
                                       vocab_size=len(VOCABULARY), bos_token_id=0, eos_token_id=0))
    words = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unknown>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>",
                                        pad_token="<end>")
    tokens = torch.arange(12 * 32).reshape(12, 32).remainder(len(VOCABULARY)).tolist()
    given = SFTConfig(
        output_dir=folder, use_cpu=True, bf16=False, max_steps=3, gradient_accumulation_steps=2,
        per_device_train_batch_size=2, max_length=32, report_to=[], save_strategy="no",
        disable_tqdm=True, gradient_checkpointing=False, seed=3)
    trainer = SFTTrainer(model=model, args=given, processing_class=tokenizer,
                         train_dataset=Dataset.from_dict({"input_ids": tokens}))
    trainer.remove_callback(PrinterCallback)
    return trainer


def _weights(trainer):
    trainer.train()
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def try_sft():
    """(what ran, what was left out, faults)."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            want = _weights(_trainer(folder))
        except (ImportError, RuntimeError) as error:  # the second is transformers' for the first
            if "No module named" not in str(error):
                raise
            return "", [f"SFTTrainer: {str(error).splitlines()[-1]}"], []
        if not all(map(same, want, _weights(_trainer(folder)))):
            return "", ["SFTTrainer: its plain runs differ"], []
        trainer = _trainer(folder)
        hooks = _hooks(trainer.model)
        context = trainer.maybe_activation_offload_context = get_act_offloading_ctx_manager(
            trainer.model)
        faults = []
        if not all(map(same, want, _weights(trainer))):
            faults.append("SFTTrainer: a weight differs")
        if not context.empty():
            faults.append("SFTTrainer: something is left")
        if not context.statistics().offloaded_count:
            faults.append("SFTTrainer: nothing moved")
        if _hooks(trainer.model) != hooks + 2:
            faults.append("SFTTrainer: the head has no hooks")
        print(f"SFTTrainer: {context.statistics()}", flush=True)
    return "an SFTTrainer", [], faults


def _hooks(model):
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks)
               for part in model.modules())
