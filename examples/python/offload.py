"""A step of a Hugging Face model under ferry.offload: one line more than without.

    pip install torch-ferry transformers
    python offload.py
"""

import torch
import torch_ferry as ferry
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_head=4, n_embd=128, vocab_size=1000)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.randint(0, 1000, (4, 256), device=device)

offload = ferry.offload()
for step in range(3):
    with offload:
        loss = model(tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
print(offload.statistics())
