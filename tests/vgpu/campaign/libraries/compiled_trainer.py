"""transformers' Trainer with torch_compile=True, beside the same on the CPU without."""

import tempfile

import torch
from tiny import gpt2, rows, weights
from transformers import Trainer, TrainingArguments


def trained(folder, on_cpu):
    arguments = TrainingArguments(
        output_dir=folder, max_steps=3, per_device_train_batch_size=2, use_cpu=on_cpu,
        torch_compile=not on_cpu, optim="sgd", learning_rate=0.1,
        report_to="none", save_strategy="no", disable_tqdm=True)
    trainer = Trainer(model=gpt2(), args=arguments, train_dataset=rows(8))
    trainer.train()
    return weights(trainer.model)


with tempfile.TemporaryDirectory() as folder:
    print(all(torch.allclose(one, other, rtol=0, atol=1e-6) for one, other in zip(
        trained(folder, False), trained(folder, True), strict=True)))
