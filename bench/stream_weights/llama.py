"""Steps of a Llama's LoRA in bfloat16, for `ferry run --no-values`: time and memory.

    ferry run --card rtx4090 --no-values llama.py SIZE WEIGHTS BATCH TOKENS [KEEP [LAYERS]]

SIZE: 8b, 32b (Qwen3-32B's sizes) or 70b. WEIGHTS: `device`, `stream` (torch_ferry.stream_weights),
`device-nf4` or `stream-nf4` (four bits, which needs bitsandbytes; a layer makes its weight whole
and multiplies, in forward and in backward). All layers are checkpointed, and have adapters of rank
16 at all linear layers. The loss is computed in 8 slices. KEEP: the option of stream_weights.
Prints the last step's time, its peaks of allocated and reserved GiB, and the GiB on the host.
"""

import sys

import torch
import transformers
from lora import adapt
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint

import torch_ferry as ferry

STEPS, SLICES, RANK = 4, 8, 16
SIZES = {
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256},
    "32b": {"hidden_size": 5120, "intermediate_size": 25600, "num_hidden_layers": 64,
            "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 151936,
            "head_dim": 128},
    "70b": {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
            "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256},
}
SIZE, WEIGHTS, BATCH, TOKENS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
KEEP = sys.argv[5] if len(sys.argv) > 5 else 0
if len(sys.argv) > 6:
    SIZES[SIZE]["num_hidden_layers"] = int(sys.argv[6])


class FourBit(torch.autograd.Function):
    """A product with a weight of four bits."""

    @staticmethod
    def forward(ctx, x, weight, state):
        ctx.save_for_backward(weight)
        ctx.state = state
        return linear(x, bitsandbytes.functional.dequantize_4bit(weight, state))

    @staticmethod
    def backward(ctx, gradient):
        weight, = ctx.saved_tensors
        return gradient @ bitsandbytes.functional.dequantize_4bit(weight, ctx.state), None, None


def four_bit(base):
    layer = bitsandbytes.nn.Linear4bit(base.in_features, base.out_features, bias=False,
                                       quant_type="nf4", compute_dtype=torch.bfloat16)
    layer.load_state_dict(base.state_dict())
    layer.forward = lambda x: FourBit.apply(x, layer.weight, layer.weight.quant_state)
    return layer


if WEIGHTS.endswith("nf4"):
    import bitsandbytes
torch.set_default_dtype(torch.bfloat16)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    **SIZES[SIZE], attn_implementation="sdpa", use_cache=False)).requires_grad_(False)
adapt(model, RANK, four_bit if WEIGHTS.endswith("nf4") else lambda base: base)
on_host = 0
if WEIGHTS.startswith("stream"):
    on_host = ferry.stream_weights(model, device="cuda", keep=KEEP).statistics().host_bytes
else:
    model.cuda()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], fused=True)
ids = torch.zeros(BATCH, TOKENS, dtype=torch.long, device="cuda")


def loss_of(states):
    return model.lm_head(states).float().logsumexp(-1).mean()


events = [torch.cuda.Event(enable_timing=True) for _ in range(STEPS + 1)]
for step in range(STEPS):
    events[step].record()
    states = model.model(ids).last_hidden_state
    sum(checkpoint(loss_of, each, use_reentrant=False)
        for each in states.split(TOKENS // SLICES, 1)).backward()
    optimizer.step()
    optimizer.zero_grad()
events[STEPS].record()
torch.cuda.synchronize()
print(SIZE, WEIGHTS, BATCH, TOKENS, KEEP,
      f"{events[STEPS - 1].elapsed_time(events[STEPS]) / 1e3:.3f} s",
      f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB",
      f"{torch.cuda.max_memory_reserved() / 2**30:.2f} GiB", f"{on_host / 2**30:.1f} GiB")
