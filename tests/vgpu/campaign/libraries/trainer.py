"""Hugging Face's Trainer: three steps of two batches each from page-locked memory, AdamW, gradients
clipped.
"""

import tempfile

from tiny import gpt2, rows, told, weights
from transformers import PrinterCallback, Trainer, TrainingArguments


def trained(folder, cpu):
    given = TrainingArguments(
        output_dir=folder, use_cpu=cpu, bf16=False, max_steps=3, gradient_accumulation_steps=2,
        per_device_train_batch_size=2, report_to=[], save_strategy="no", disable_tqdm=True, seed=3,
        optim="adamw_torch", dataloader_pin_memory=True)
    trainer = Trainer(model=gpt2(), args=given, train_dataset=rows(12))
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return weights(trainer.model)


with tempfile.TemporaryDirectory() as folder:
    told(trained(folder, False), trained(folder, True))
