"""The presets: models by name. Each gives (module, inputs, loss function, about) on fake tensors.

The shapes are the published ones, and no weights are needed. Language models have their own loss:
causal language modelling on labels, in float32. Dropout is 0 by default, because published
fine-tuning recipes train without it, and a program without random numbers is simpler. If the layers
of a model are alike, a few of them may stand for all (`about` says how many). The loss of Qwen3-8B
is the mean of one token's logits, as in the published measurement that it is compared with
(docs/reference/policies.md). The U-Net is our own (unet.py); it has long skips. For models of
images, "tokens" is the height and the width of the image.
"""

import torch

from . import lora, unet

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# name → (what it is, batch, tokens)
MODELS = {
    "gpt2": ("GPT-2 124M", 8, 1024),
    "llama3-8b": ("Llama-3-8B", 1, 8192),
    "llama3-8b-lora": ("Llama-3-8B, 4 of 32 layers, LoRA of rank 16 on q and v", 1, 8192),
    "mixtral-block": ("Mixtral-8x7B, 1 of 32 layers", 1, 4096),
    "qwen3-8b": ("Qwen3-8B, the last token's logits", 1, 8192),
    "resnet50": ("ResNet-50", 64, 224),
    "unet": ("U-Net", 8, 256),
    "vit-b16": ("ViT-B/16", 64, 224),
}
NAMES = tuple(MODELS)
IMAGES = ("resnet50", "unet", "vit-b16")


def build(name, batch=None, tokens=None, dtype="bf16", dropout=0.0):
    """Returns (module, inputs, loss function, about) of a preset; call it under a FakeTensorMode.
    """
    model, *defaults = MODELS[name]
    batch, tokens = batch or defaults[0], tokens or defaults[1]
    about = {"model": model, "batch": str(batch), "dtype": dtype}
    if name in IMAGES:
        if dropout and name != "vit-b16":
            raise ValueError(f"dropout: {name} has no dropout")
        about["image"] = f"3x{tokens}x{tokens}"
    if name == "unet":
        return *unet.build(batch, tokens, DTYPES[dtype]), about
    import transformers

    about |= {"dropout": f"{dropout:g}", "transformers": transformers.__version__}
    if name in IMAGES:
        return *_classifier(name, batch, tokens, DTYPES[dtype], dropout), about
    about |= {"tokens": str(tokens), "attention": "efficient" if dtype == "f32" else "flash"}
    return *_language_model(name, batch, tokens, DTYPES[dtype], dropout), about


def _classifier(name, batch, size, dtype, dropout):
    import transformers

    if name == "resnet50":
        model = transformers.ResNetForImageClassification(transformers.ResNetConfig(
            num_labels=1000))
    else:
        model = transformers.ViTForImageClassification(transformers.ViTConfig(
            num_labels=1000, image_size=size, hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout))
    inputs = {"pixel_values": torch.zeros(batch, 3, size, size, dtype=dtype),
              "labels": torch.zeros(batch, dtype=torch.int64)}
    return model.to(dtype).train(), inputs, lambda output: output.loss


def _language_model(name, batch, tokens, dtype, dropout):
    import transformers

    config = _CONFIGS[name](tokens, dropout)
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.loss_type = "ForCausalLM"
    if name == "llama3-8b-lora":
        model = lora.adapt(model, ("q_proj", "v_proj"))
    if name == "qwen3-8b":
        inputs = {"input_ids": torch.zeros(batch, tokens, dtype=torch.int64), "logits_to_keep": 1}
        return model.train(), inputs, lambda output: output.logits.float().mean()
    inputs = {"input_ids": torch.zeros(batch, tokens, dtype=torch.int64),
              "labels": torch.zeros(batch, tokens, dtype=torch.int64)}
    return model.train(), inputs, lambda output: output.loss


def _gpt2(tokens, dropout):
    from transformers import GPT2Config

    return GPT2Config(n_positions=max(tokens, 1024), resid_pdrop=dropout, embd_pdrop=dropout,
                      attn_pdrop=dropout)


def _llama3_8b(tokens, dropout, layers=32):
    from transformers import LlamaConfig

    return LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                       num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=8,
                       max_position_embeddings=max(tokens, 8192), attention_dropout=dropout)


def _mixtral(tokens, dropout):
    from transformers import MixtralConfig

    return MixtralConfig(num_hidden_layers=1, attention_dropout=dropout,
                         max_position_embeddings=max(tokens, 4096))


def _qwen3_8b(tokens, dropout):
    from transformers import Qwen3Config

    return Qwen3Config(vocab_size=151936, hidden_size=4096, intermediate_size=12288,
                       num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
                       head_dim=128, max_position_embeddings=max(tokens, 40960),
                       rope_theta=1e6, tie_word_embeddings=False, attention_dropout=dropout)


_CONFIGS = {"gpt2": _gpt2, "llama3-8b": _llama3_8b, "mixtral-block": _mixtral,
            "qwen3-8b": _qwen3_8b,
            "llama3-8b-lora": lambda tokens, dropout: _llama3_8b(tokens, dropout, layers=4)}
