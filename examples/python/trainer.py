"""Hugging Face's Trainer with offloaded activations: a callback.

    pip install torch-ferry "transformers[torch]"
    python trainer.py
"""

import tempfile

import torch
from torch_ferry.transformers import OffloadCallback
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_head=4, n_embd=128, vocab_size=1000))
samples = [{"input_ids": row, "labels": row} for row in torch.randint(0, 1000, (24, 128))]
callback = OffloadCallback()

with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(output_dir=folder, max_steps=3, gradient_accumulation_steps=2,
                                  per_device_train_batch_size=4, report_to=[],
                                  save_strategy="no", disable_tqdm=True)
    Trainer(model=model, args=arguments, train_dataset=samples, callbacks=[callback]).train()
print(callback.offload.statistics())
