"""Ten architectures that others wrote, made from tiny configurations: no weights, no network.

Each is small in its parameters and larger in what it saves, so that moving that shows.
"""

import torch
import transformers
from torch import nn

VOCABULARY = 256


def _tokens(batch=8, length=64):
    return torch.randint(0, VOCABULARY, (batch, length))


def _causal(kind, config):
    tokens = _tokens()
    return kind(config), {"input_ids": tokens, "labels": tokens}


def gpt2():
    return _causal(transformers.GPT2LMHeadModel, transformers.GPT2Config(
        n_layer=3, n_head=4, n_embd=64, vocab_size=VOCABULARY, n_positions=64))


_DECODER = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=2, vocab_size=VOCABULARY, attention_dropout=0.1)


def llama():
    return _causal(transformers.LlamaForCausalLM, transformers.LlamaConfig(**_DECODER))


def qwen():
    return _causal(transformers.Qwen3ForCausalLM,
                   transformers.Qwen3Config(head_dim=16, **_DECODER))


def mixtral():
    return _causal(transformers.MixtralForCausalLM, transformers.MixtralConfig(
        num_local_experts=4, num_experts_per_tok=2, output_router_logits=True, **_DECODER))


def mamba():
    return _causal(transformers.MambaForCausalLM, transformers.MambaConfig(
        hidden_size=64, state_size=8, num_hidden_layers=2, vocab_size=VOCABULARY))


def bert():
    config = transformers.BertConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
        vocab_size=VOCABULARY, max_position_embeddings=64)
    return _causal(transformers.BertForMaskedLM, config)


def t5():
    config = transformers.T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                                   vocab_size=VOCABULARY, decoder_start_token_id=0)
    model, tokens = transformers.T5ForConditionalGeneration(config), _tokens()
    return model, {"input_ids": tokens, "labels": tokens[:, :32].contiguous()}


def vit():
    config = transformers.ViTConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
        image_size=32, patch_size=4, num_labels=10, hidden_dropout_prob=0.1)
    return transformers.ViTForImageClassification(config), {
        "pixel_values": torch.randn(8, 3, 32, 32), "labels": torch.randint(0, 10, (8,))}


def whisper():
    config = transformers.WhisperConfig(
        d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16,
        max_source_positions=40, max_target_positions=64, vocab_size=VOCABULARY, dropout=0.1,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)
    return transformers.WhisperForConditionalGeneration(config), {
        "input_features": torch.randn(8, 16, 80), "labels": _tokens(length=32)}


class _Denoiser(nn.Module):
    """The loss of a diffusion model's training, as the other models have theirs."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.supports_gradient_checkpointing = True

    def forward(self, noisy, noise, times, text):
        made = self.model(noisy, times, text).sample
        return transformers.utils.ModelOutput(loss=(made - noise).pow(2).mean())

    @property
    def device(self):
        return self.model.device

    def _set_gradient_checkpointing(self, enable, gradient_checkpointing_func):
        self.model.enable_gradient_checkpointing(gradient_checkpointing_func)


def unet():
    from diffusers import UNet2DConditionModel
    model = UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, dropout=0.1,
        block_out_channels=(32, 64), cross_attention_dim=32, attention_head_dim=8,
        norm_num_groups=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    noise = torch.randn(4, 4, 16, 16)
    return _Denoiser(model), {
        "noisy": torch.randn(4, 4, 16, 16) + noise, "noise": noise,
        "times": torch.randint(0, 1000, (4,)), "text": torch.randn(4, 8, 32)}


MODELS = {"GPT-2": gpt2, "Llama": llama, "Qwen3": qwen, "BERT": bert, "T5": t5, "ViT": vit,
          "Whisper": whisper, "Mamba": mamba, "Mixtral": mixtral, "U-Net (diffusers)": unet}
