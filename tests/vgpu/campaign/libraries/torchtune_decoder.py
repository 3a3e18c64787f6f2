"""torchtune's activation offloading around its own decoder, two steps.

The gradients are those without offloading, to the bit, and near the CPU's: CUDA's norm is an
operator of its own.
"""

import contextlib
import importlib

import torch
from tiny import VOCABULARY, gradients, told, tokens
from given import torchtunes_offloading

offloading = torchtunes_offloading()
modules = importlib.import_module("torchtune.modules")


def decoder():
    torch.manual_seed(0)
    width, heads, length = 64, 4, 32

    def linear(a, b):
        return torch.nn.Linear(a, b, bias=False)

    def layer():
        attention = modules.MultiHeadAttention(
            embed_dim=width, num_heads=heads, num_kv_heads=2, head_dim=width // heads,
            q_proj=linear(width, width), k_proj=linear(width, width // 2),
            v_proj=linear(width, width // 2), output_proj=linear(width, width),
            pos_embeddings=modules.RotaryPositionalEmbeddings(width // heads, max_seq_len=length),
            max_seq_len=length)
        mlp = modules.FeedForward(gate_proj=linear(width, 128), down_proj=linear(128, width),
                                  up_proj=linear(width, 128))
        return modules.TransformerSelfAttentionLayer(
            attn=attention, mlp=mlp, sa_norm=modules.RMSNorm(width),
            mlp_norm=modules.RMSNorm(width))

    return modules.TransformerDecoder(
        tok_embeddings=torch.nn.Embedding(VOCABULARY, width),
        layers=[layer() for _ in range(3)], max_seq_len=length, num_heads=heads,
        head_dim=width // heads, norm=modules.RMSNorm(width), output=linear(width, VOCABULARY))


def trained(device, context):
    model = decoder().to(device)
    batch = torch.stack([tokens(i) for i in range(2)]).to(device)
    for _ in range(2):
        model.zero_grad()
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            with context():
                loss = model(batch).square().mean()
            loss.backward()
    return gradients(model)


plain, cpu = (trained(device, contextlib.nullcontext) for device in ("cuda", "cpu"))
for mine, wanted in zip(plain, cpu, strict=True):
    torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-8)
told(trained("cuda", lambda: offloading(min_offload_size=64)), plain)
