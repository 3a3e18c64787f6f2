"""Steps of Llama-3-8B in bfloat16 with AdamW, for `ferry run --no-values`: time and memory.

    ferry run --card h100 --no-values llama.py STATE [TOKENS [SLICES [AHEAD [BEHIND]]]]

STATE: `device` (fused AdamW, its state on the device), `host` (after clipping), `in-backward`, or
`none` (no optimizer: gradients are dropped as they come). All layers are checkpointed. SLICES: the
loss is computed in so many slices of tokens, each a checkpoint. AHEAD, BEHIND: options of
torch_ferry.optimizer. Prints the last step's time, and its peaks of allocated and reserved GiB.
"""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import LlamaConfig, LlamaForCausalLM

import torch_ferry as ferry

STEPS = 3
STATE = sys.argv[1]
TOKENS, SLICES, AHEAD, BEHIND = [*sys.argv[2:], *"8192 1 256MiB 256MiB".split()[len(sys.argv) - 2:]]
TOKENS, SLICES = int(TOKENS), int(SLICES)

torch.set_default_dtype(torch.bfloat16)
config = LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                     num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                     max_position_embeddings=131072, rope_parameters={"rope_type": "default",
                                                                      "rope_theta": 500000.0},
                     attn_implementation="sdpa", use_cache=False)
with torch.device("cuda"):
    model = LlamaForCausalLM(config)
model.train()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
optimizer = None
if STATE == "none":
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    if STATE != "device":
        ferry.optimizer(optimizer, in_backward=STATE == "in-backward", ahead=AHEAD, behind=BEHIND)
ids = torch.randint(0, config.vocab_size, (1, TOKENS)).cuda()


def loss_of(hidden, targets):
    return cross_entropy(model.lm_head(hidden).float(), targets, reduction="sum")


events = [torch.cuda.Event(enable_timing=True) for _ in range(STEPS + 1)]
for step in range(STEPS):
    if step == STEPS - 1:
        torch.cuda.reset_peak_memory_stats()
    events[step].record()
    if SLICES > 1:
        hidden = model.model(input_ids=ids).last_hidden_state[0]
        parts = zip(hidden.chunk(SLICES), ids[0].chunk(SLICES))
        loss = sum(checkpoint(loss_of, *part, use_reentrant=False) for part in parts) / TOKENS
    else:
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
    if STATE in ("device", "host"):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()
events[STEPS].record()
torch.cuda.synchronize()
peaks = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
print(STATE, TOKENS, AHEAD, BEHIND, f"{events[STEPS - 1].elapsed_time(events[STEPS]):.0f} ms",
      *(f"{peak / 2 ** 30:.2f}" for peak in peaks))
