"""A GPT-2 that torch.compile compiled, in three modes, and its compiled optimizer. Fused sums have
another order than the CPU's, so the losses are close and not the same.
"""

import torch
from tiny import gpt2, tokens


def losses(device, mode=None):
    torch._dynamo.reset()
    model = gpt2().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    forward, step = model, optimizer.step
    if mode is not None:
        forward, step = torch.compile(model, mode=mode), torch.compile(optimizer.step)
    batch = torch.stack([tokens(i) for i in range(2)]).to(device)
    found = []
    for _ in range(4):
        loss = forward(input_ids=batch, labels=batch, use_cache=False).loss
        found.append(loss.detach().cpu())
        loss.backward()
        step()
        optimizer.zero_grad()
    return torch.stack(found)


wanted = losses("cpu")
print(all(torch.allclose(losses("cuda", mode), wanted, rtol=1e-5, atol=0)
          for mode in ("default", "reduce-overhead", "max-autotune-no-cudagraphs")))
