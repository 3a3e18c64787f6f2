"""Fine-tunings as people write them, of tiny models with random weights on data made here.

Each function of ROWS makes a trainer. `callbacks` is where Ferry's line goes, and `more` are
arguments of the trainer's. Nothing else in here knows of Ferry. The loop by hand is in by_hand.py.
"""

import os
import pathlib

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

import torch
import transformers

TOKENS, WORDS, SAMPLES, BATCH = 128, 256, 21, 4  # the last of six batches has one sample
AGAIN = 2  # microbatches a step
_LAYERS = dict(num_hidden_layers=4, hidden_size=64, intermediate_size=256, num_attention_heads=4)


def arguments(kind, folder, **more):
    return kind(**{"output_dir": folder, "use_cpu": True, "bf16": True, "seed": 3,
                   "per_device_train_batch_size": BATCH, "gradient_accumulation_steps": AGAIN,
                   "num_train_epochs": 1, "logging_steps": 1, "eval_strategy": "steps",
                   "eval_steps": 2, "save_strategy": "no", "report_to": [], "disable_tqdm": True,
                   **more})


def llama(kind=transformers.LlamaForCausalLM, **options):
    torch.manual_seed(0)
    return kind(transformers.LlamaConfig(
        vocab_size=WORDS, num_key_value_heads=2, max_position_embeddings=TOKENS, pad_token_id=0,
        bos_token_id=0, eos_token_id=0, **_LAYERS, **options))


def ids(index, tokens=TOKENS):
    return [2 + (index * 7 + at * (index % 5 + 1)) % (WORDS - 2) for at in range(tokens)]


def text(index, tokens):
    return " ".join(f"word{each}" for each in ids(index, tokens))


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    known = {"<end>": 0, "<unknown>": 1} | {f"word{at}": at for at in range(2, WORDS)}
    words = Tokenizer(models.WordLevel(known, unk_token="<unknown>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="<end>", pad_token="<end>", model_max_length=TOKENS)


def dataset(samples):
    import datasets
    datasets.disable_progress_bars()
    return datasets.Dataset.from_list(samples)


# Trainer.

def causal_lm(folder, callbacks, model=None, **more):
    samples = [{"input_ids": ids(each), "labels": ids(each)} for each in range(SAMPLES)]
    return transformers.Trainer(
        model=model or llama(), args=arguments(transformers.TrainingArguments, folder, **more),
        train_dataset=samples, eval_dataset=samples[:3], callbacks=callbacks)


def classification(folder, callbacks, **more):
    """Sentences of many lengths, padded to one."""
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=WORDS, max_position_embeddings=TOKENS, num_labels=3, **_LAYERS))
    samples = [{"input_ids": ids(each, TOKENS - each), "attention_mask": [1] * (TOKENS - each),
                "label": each % 3} for each in range(SAMPLES)]
    words = tokenizer()
    return transformers.Trainer(
        model=model, args=arguments(transformers.TrainingArguments, folder, **more),
        train_dataset=samples, eval_dataset=samples[:3], processing_class=words,
        data_collator=transformers.DataCollatorWithPadding(words, pad_to_multiple_of=TOKENS),
        callbacks=callbacks)


def images(folder, callbacks, **more):
    torch.manual_seed(0)
    model = transformers.ViTForImageClassification(transformers.ViTConfig(
        image_size=64, patch_size=4, num_labels=5, hidden_dropout_prob=0.1, **_LAYERS))
    samples = [{"pixel_values": torch.randn(3, 64, 64), "labels": each % 5}
               for each in range(SAMPLES)]
    return transformers.Trainer(
        model=model, args=arguments(transformers.TrainingArguments, folder, **more),
        train_dataset=samples, eval_dataset=samples[:3], callbacks=callbacks)


# TRL.

def sft(folder, callbacks, model=None, lora=None, **more):
    from trl import SFTConfig, SFTTrainer
    given = arguments(SFTConfig, folder, max_length=TOKENS, pad_to_multiple_of=TOKENS, **more)
    samples = dataset([{"text": text(each, TOKENS - each)} for each in range(SAMPLES)])
    return SFTTrainer(
        model=model or llama(), args=given, processing_class=tokenizer(), train_dataset=samples,
        eval_dataset=samples.select(range(3)), peft_config=lora, callbacks=callbacks)


def packed(folder, callbacks, strategy="bfd", lengths=8, **more):
    """Samples of half a row and less, of which TRL makes batches, each of another length."""
    from trl import SFTConfig, SFTTrainer
    given = arguments(SFTConfig, folder, max_length=TOKENS, packing=True,
                      packing_strategy=strategy, **more)
    samples = dataset([{"text": text(each, TOKENS // 2 - 1 - each % lengths)}
                       for each in range(2 * SAMPLES)])
    return SFTTrainer(
        model=llama(), args=given, processing_class=tokenizer(), train_dataset=samples,
        eval_dataset=samples.select(range(4)), callbacks=callbacks)


def packed_and_cut(folder, callbacks, **more):
    """Where samples are cut so that all rows are full. (Were the last not, its batch would have a
    mask, which is another saved tensor, and another forward than the plan's.)"""
    return packed(folder, callbacks, strategy="wrapped", lengths=1, **more)


def _lora():
    from peft import LoraConfig
    return LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05, target_modules="all-linear",
                      task_type="CAUSAL_LM")


def sft_lora(folder, callbacks, **more):
    return sft(folder, callbacks, lora=_lora(), **more)


def sft_qlora(folder, callbacks, **more):
    """The weights in four bits, as bitsandbytes has them."""
    import bitsandbytes  # noqa: F401  what transformers says without it is long
    saved = pathlib.Path(folder, "model")
    llama().save_pretrained(saved)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        saved, device_map="cpu", quantization_config=transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16))
    return sft(folder, callbacks, model=model, lora=_lora(), **more)


def _preferences(count):
    """A prompt, and two answers."""
    third = TOKENS // 3
    return dataset([{"prompt": text(each, third), "chosen": " " + text(each + 50, third),
                     "rejected": " " + text(each + 90, third - each % 4)}
                    for each in range(count)])


def dpo(folder, callbacks, lora=None, **more):
    from trl import DPOConfig, DPOTrainer
    given = arguments(DPOConfig, folder, max_length=TOKENS, pad_to_multiple_of=TOKENS, **more)
    samples = _preferences(SAMPLES)
    return DPOTrainer(
        model=llama(), ref_model=None if lora else llama(), args=given,
        processing_class=tokenizer(), train_dataset=samples, peft_config=lora,
        eval_dataset=samples.select(range(3)), callbacks=callbacks)


def dpo_lora(folder, callbacks, **more):
    """The model without its adapters is the reference."""
    return dpo(folder, callbacks, lora=_lora(), **more)


def reward(folder, callbacks, **more):
    from trl import RewardConfig, RewardTrainer
    given = arguments(RewardConfig, folder, max_length=TOKENS, pad_to_multiple_of=TOKENS, **more)
    samples = _preferences(SAMPLES)
    model = llama(transformers.LlamaForSequenceClassification, num_labels=1)
    return RewardTrainer(
        model=model, args=given, processing_class=tokenizer(), train_dataset=samples,
        eval_dataset=samples.select(range(3)), callbacks=callbacks)


ROWS = {
    "Trainer, causal LM": causal_lm,
    "Trainer, classification": classification,
    "Trainer, images": images,
    "SFTTrainer": sft,
    "SFTTrainer, packing": packed,
    "SFTTrainer, packing, wrapped": packed_and_cut,
    "SFTTrainer, LoRA": sft_lora,
    "SFTTrainer, QLoRA": sft_qlora,
    "DPOTrainer": dpo,
    "DPOTrainer, LoRA": dpo_lora,
    "RewardTrainer": reward,
}
