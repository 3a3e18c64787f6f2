"""Llama-3-8B in bfloat16 on one sequence of 8,192 tokens, without an optimizer: keep|checkpoint.

Prints for each of two steps the bytes allocated after the forward, their peak, and the peak that is
reserved.
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

CONFIG = LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                     num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                     max_position_embeddings=8192, use_cache=False)


def make_model():
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = LlamaForCausalLM(CONFIG)
    torch.set_default_dtype(torch.float32)
    return model.to_empty(device="cuda").train()


def main():
    model = make_model()
    if sys.argv[1] == "checkpoint":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    ids = torch.zeros(1, 8192, dtype=torch.long, device="cuda")
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        loss = model(input_ids=ids, labels=ids).loss
        forward = torch.cuda.memory_allocated()
        loss.backward()
        del loss
        print(forward, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
        model.zero_grad(set_to_none=True)


main()
