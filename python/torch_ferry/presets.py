"""The models that a word names. Each gives (module, inputs, loss function, about) on fake tensors.

The language models' shapes are the published ones; no weights are needed. Their loss is their own:
causal language modelling on labels, in float32. Dropout is 0 unless asked for: published
fine-tuning recipes of both train without it, and a program without random numbers is the simpler
one. The U-Net is ours (unet.py), for its long skips; its "tokens" are the image's height and width.
"""

import torch

from . import unet

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
NAMES = ("gpt2", "llama3-8b", "unet")
DEFAULTS = {"gpt2": (8, 1024), "llama3-8b": (1, 8192), "unet": (8, 256)}  # batch, tokens
ABOUT = {"gpt2": "GPT-2 124M", "llama3-8b": "Llama-3-8B", "unet": "U-Net"}


def build(name, batch=None, tokens=None, dtype="bf16", dropout=0.0):
    """To be called under a FakeTensorMode."""
    batch, tokens = batch or DEFAULTS[name][0], tokens or DEFAULTS[name][1]
    if name == "unet":
        if dropout:
            raise ValueError("the U-Net has no dropout")
        about = {"model": ABOUT[name], "batch": str(batch), "image": f"3x{tokens}x{tokens}",
                 "dtype": dtype}
        return *unet.build(batch, tokens, DTYPES[dtype]), about
    return _language_model(name, batch, tokens, dtype, dropout)


def _language_model(name, batch, tokens, dtype, dropout):
    import transformers

    config = _gpt2(tokens, dropout) if name == "gpt2" else _llama3_8b(tokens, dropout)
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
    model.loss_type = "ForCausalLM"
    model.train()
    inputs = {"input_ids": torch.zeros(batch, tokens, dtype=torch.int64),
              "labels": torch.zeros(batch, tokens, dtype=torch.int64)}
    about = {"model": ABOUT[name], "batch": str(batch), "tokens": str(tokens), "dtype": dtype,
             "dropout": f"{dropout:g}", "attention": "flash" if dtype != "f32" else "efficient",
             "transformers": transformers.__version__}
    return model, inputs, lambda output: output.loss, about


def _gpt2(tokens, dropout):
    from transformers import GPT2Config

    return GPT2Config(n_positions=max(tokens, 1024), resid_pdrop=dropout, embd_pdrop=dropout,
                      attn_pdrop=dropout)


def _llama3_8b(tokens, dropout):
    from transformers import LlamaConfig

    return LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                       num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                       max_position_embeddings=max(tokens, 8192), attention_dropout=dropout)
