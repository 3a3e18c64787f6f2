"""TRL's SFTTrainer with its own activation offloading, three steps of two batches each."""

import tempfile

from datasets import Dataset, disable_progress_bars
from tiny import VOCABULARY, gpt2, told, tokens, weights
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, PrinterCallback
from trl import SFTConfig, SFTTrainer

disable_progress_bars()
WORDS = {"<end>": 0, "<unknown>": 1} | {f"word{i}": i for i in range(2, VOCABULARY)}


def trained(folder, cpu):
    words = Tokenizer(models.WordLevel(WORDS, unk_token="<unknown>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>",
                                        pad_token="<end>")
    given = SFTConfig(
        output_dir=folder, use_cpu=cpu, bf16=False, max_steps=3, gradient_accumulation_steps=2,
        per_device_train_batch_size=2, max_length=32, report_to=[], save_strategy="no",
        disable_tqdm=True, gradient_checkpointing=False, seed=3, optim="adamw_torch",
        activation_offloading=not cpu)
    data = Dataset.from_dict({"input_ids": [tokens(i).tolist() for i in range(12)]})
    trainer = SFTTrainer(model=gpt2(), args=given, processing_class=tokenizer, train_dataset=data)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return weights(trainer.model)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        told(trained(folder, False), trained(folder, True))
