"""A loop that was written for TRL's activation offloading: the import line is all that changed.

    pip install torch-ferry transformers
    python trl_import.py

With one of TRL's trainers, set `activation_offloading=False`, and before `trainer.train()`:

    trainer.maybe_activation_offload_context = get_act_offloading_ctx_manager(trainer.model)
"""

import torch
# from trl.models.activation_offloading import get_act_offloading_ctx_manager
from torch_ferry.trl import get_act_offloading_ctx_manager
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = LlamaForCausalLM(LlamaConfig(
    hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, vocab_size=1000)).to(device)
tokens = torch.randint(0, 1000, (4, 256), device=device)

context = get_act_offloading_ctx_manager(model, max_fwd_stash_size=5)
for step in range(3):
    with context:
        loss = model(tokens, labels=tokens).loss
        loss.backward()
    model.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
print(context.statistics())
