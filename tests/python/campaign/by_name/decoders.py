"""Published configurations of the hub's most used language models, written by hand: sizes, heads,
vocabularies, and what else changes memory. Values that are the library's defaults are left out.

Each entry is the model's name, and (tokens in a sequence, sequences in a batch, contents of its
config.json). Batches are small so that a run takes seconds; odd lengths are among them, because
paddings of kernels depend on these. A name with "N layers" has N of the model's layers, because
the published model does not fit the simulated card with plain AdamW.
"""


def _llama(hidden, inner, layers, heads, groups, vocabulary, tied=False, dtype="bfloat16", **more):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
            "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": groups, "vocab_size": vocabulary, "tie_word_embeddings": tied,
            "dtype": dtype, **more}


def _like(kind, head, *sizes, **more):
    """Returns the configuration of a family whose keys are Llama's."""
    return {**_llama(*sizes, **more), "model_type": kind, "architectures": [head]}


def _qwen2(*sizes, **more):
    return _like("qwen2", "Qwen2ForCausalLM", *sizes, max_position_embeddings=32768, **more)


def _qwen3(*sizes, **more):
    return _like("qwen3", "Qwen3ForCausalLM", *sizes, head_dim=128, max_position_embeddings=40960,
                 **more)


def _gpt2(width, layers, heads):
    return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": width,
            "n_layer": layers, "n_head": heads, "n_positions": 1024, "vocab_size": 50257}


def _pythia(hidden, layers, heads, vocabulary):
    return {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "dtype": "float16",
            "hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "vocab_size": vocabulary, "rotary_pct": 0.25,
            "max_position_embeddings": 2048, "use_parallel_residual": True}


def _opt(hidden, layers, heads):
    return {"architectures": ["OPTForCausalLM"], "model_type": "opt", "dtype": "float16",
            "hidden_size": hidden, "ffn_dim": 4 * hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "word_embed_proj_dim": hidden, "vocab_size": 50272,
            "max_position_embeddings": 2048, "dropout": 0.1}


_LLAMA3 = {"max_position_embeddings": 131072, "rope_parameters": {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}

DECODERS = {
    "Llama-2-7b": (512, 1, _llama(4096, 11008, 32, 32, 32, 32000, dtype="float16",
                                  max_position_embeddings=4096)),
    "Llama-3.1-8B": (512, 1, _llama(4096, 14336, 32, 32, 8, 128256, **_LLAMA3)),
    "Llama-3.2-1B": (1024, 4, _llama(2048, 8192, 16, 32, 8, 128256, True, head_dim=64, **_LLAMA3)),
    "Llama-3.2-3B": (777, 2, _llama(3072, 8192, 28, 24, 8, 128256, True, head_dim=128, **_LLAMA3)),
    "TinyLlama-1.1B": (2048, 2, _llama(2048, 5632, 22, 32, 4, 32000,
                                       max_position_embeddings=2048)),
    "SmolLM2-135M": (1024, 8, _llama(576, 1536, 30, 9, 3, 49152, True,
                                     max_position_embeddings=8192)),
    "SmolLM3-3B": (1024, 1, _like(
        "smollm3", "SmolLM3ForCausalLM", 2048, 11008, 36, 16, 4, 128256, True,
        no_rope_layer_interval=4, max_position_embeddings=65536)),
    "Qwen2-0.5B": (512, 8, _qwen2(896, 4864, 24, 14, 2, 151936, True)),
    "Qwen2.5-1.5B": (1000, 2, _qwen2(1536, 8960, 28, 12, 2, 151936, True)),
    "Qwen2.5-7B": (512, 1, _qwen2(3584, 18944, 28, 28, 4, 152064)),
    "Qwen3-0.6B": (1024, 4, _qwen3(1024, 3072, 28, 16, 8, 151936, tied=True)),
    "Qwen3-4B": (1024, 1, _qwen3(2560, 9728, 36, 32, 8, 151936, tied=True)),
    "Qwen3-8B": (512, 1, _qwen3(4096, 12288, 36, 32, 8, 151936)),
    "Qwen3-30B-A3B, 8 layers": (512, 1, _like(
        "qwen3_moe", "Qwen3MoeForCausalLM", 2048, 6144, 8, 32, 4, 151936, head_dim=128,
        moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True,
        max_position_embeddings=40960)),
    "Mistral-7B-v0.3": (512, 1, _like(
        "mistral", "MistralForCausalLM", 4096, 14336, 32, 32, 8, 32768, sliding_window=None,
        max_position_embeddings=32768)),
    "Mixtral-8x7B, 4 layers": (512, 1, _like(
        "mixtral", "MixtralForCausalLM", 4096, 14336, 4, 32, 8, 32000, num_local_experts=8,
        num_experts_per_tok=2, max_position_embeddings=32768)),
    "gemma-2b": (512, 4, _like(
        "gemma", "GemmaForCausalLM", 2048, 16384, 18, 8, 1, 256000, True, head_dim=256,
        hidden_act="gelu_pytorch_tanh", max_position_embeddings=8192)),
    "gemma-2-2b": (1024, 1, _like(
        "gemma2", "Gemma2ForCausalLM", 2304, 9216, 26, 8, 4, 256000, True, head_dim=256,
        sliding_window=4096, query_pre_attn_scalar=256, attn_logit_softcapping=50.0,
        final_logit_softcapping=30.0, max_position_embeddings=8192)),
    "gemma-3-1b": (1024, 2, _like(
        "gemma3_text", "Gemma3ForCausalLM", 1152, 6912, 26, 4, 1, 262144, True, head_dim=256,
        sliding_window=512, query_pre_attn_scalar=256, max_position_embeddings=32768)),
    "phi-2": (512, 2, _like(
        "phi", "PhiForCausalLM", 2560, 10240, 32, 32, 32, 51200, dtype="float16",
        partial_rotary_factor=0.4, hidden_act="gelu_new", resid_pdrop=0.1,
        max_position_embeddings=2048)),
    "Phi-3-mini": (512, 2, _like(
        "phi3", "Phi3ForCausalLM", 3072, 8192, 32, 32, 32, 32064, sliding_window=2047,
        pad_token_id=32000, max_position_embeddings=4096)),
    "Phi-4-mini": (512, 1, _like(
        "phi3", "Phi3ForCausalLM", 3072, 8192, 32, 24, 8, 200064, True, sliding_window=262144,
        partial_rotary_factor=0.75, pad_token_id=199999, max_position_embeddings=131072)),
    "falcon-7b": (512, 1, {
        "architectures": ["FalconForCausalLM"], "model_type": "falcon", "dtype": "bfloat16",
        "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "vocab_size": 65024, "multi_query": True, "parallel_attn": True, "bias": False,
        "new_decoder_architecture": False, "alibi": False}),
    "gpt2": (1024, 4, _gpt2(768, 12, 12)),
    "gpt2-medium": (1024, 2, _gpt2(1024, 24, 16)),
    "gpt2-large": (1000, 2, _gpt2(1280, 36, 20)),
    "gpt2-xl": (1024, 1, _gpt2(1600, 48, 25)),
    "pythia-410m": (1024, 4, _pythia(1024, 24, 16, 50304)),
    "pythia-1.4b": (2048, 1, _pythia(2048, 24, 16, 50304)),
    "opt-125m": (1024, 8, _opt(768, 12, 12)),
    "opt-1.3b": (1024, 2, _opt(2048, 24, 32)),
    "bloom-560m": (512, 4, {
        "architectures": ["BloomForCausalLM"], "model_type": "bloom", "dtype": "float16",
        "hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880}),
    "stablelm-2-1_6b": (1024, 2, _like(
        "stablelm", "StableLmForCausalLM", 2048, 5632, 24, 32, 32, 100352, use_qkv_bias=True,
        partial_rotary_factor=0.25, max_position_embeddings=4096)),
    "OLMo-1B": (1024, 1, _like(
        "olmo", "OlmoForCausalLM", 2048, 8192, 16, 16, 16, 50304, True, dtype="float32",
        max_position_embeddings=2048)),
    "OLMo-2-1B": (1024, 2, _like(
        "olmo2", "Olmo2ForCausalLM", 2048, 8192, 16, 16, 16, 100352,
        max_position_embeddings=4096)),
    "starcoder2-3b": (1024, 1, _like(
        "starcoder2", "Starcoder2ForCausalLM", 3072, 12288, 30, 24, 2, 49152, True, use_bias=True,
        sliding_window=4096, hidden_act="gelu_pytorch_tanh", residual_dropout=0.1,
        attention_dropout=0.1, embedding_dropout=0.1, max_position_embeddings=16384)),
    "granite-3.1-2b": (1024, 1, _like(
        "granite", "GraniteForCausalLM", 2048, 8192, 40, 32, 8, 49155, True,
        embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=8.0,
        attention_multiplier=0.015625, max_position_embeddings=131072)),
}
