"""Makes a model of Hugging Face. fresh.py captures it with an installed torch_ferry.capture."""

import torch
import transformers


def step():
    config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=256, vocab_size=4096)
    tokens = torch.zeros(8, 128, dtype=torch.int64, device="cuda")
    model = transformers.GPT2LMHeadModel(config).cuda()
    return model, {"input_ids": tokens, "labels": tokens}, lambda output: output.loss
