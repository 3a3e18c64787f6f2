"""A GPT of 100 M parameters that trains on the CPU, with AdamW's state in memory or on disk.

    python on_disk.py memory|DISK_FOLDER [TOKENS]

Prints the median step of the last four, the peak of the process's memory, and a hash of the
parameters.
"""

import hashlib
import resource
import sys
import time

import torch
from torch import nn

import torch_ferry as ferry

STEPS, LAYERS, WIDTH, WORDS = 6, 10, 768, 32768
WHERE, TOKENS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1024

torch.manual_seed(0)
embedding = nn.Embedding(WORDS, WIDTH)
blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, 0.0, batch_first=True,
                                                  norm_first=True) for _ in range(LAYERS))
head = nn.Linear(WIDTH, WORDS, bias=False)
head.weight = embedding.weight
model = nn.ModuleList([embedding, blocks, head])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
if WHERE != "memory":
    ferry.optimizer(optimizer, in_backward=True, disk=WHERE, ahead="32MiB", behind="32MiB",
                    piece="16MiB", waiting="32MiB")
ids = torch.randint(0, WORDS, (1, TOKENS))
times = []
for step in range(STEPS):
    began = time.perf_counter()
    x = embedding(ids)
    for block in blocks:
        x = block(x)
    loss = nn.functional.cross_entropy(head(x)[0], ids[0])
    loss.backward()
    del x, loss
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.perf_counter() - began)
parameters = sum(p.numel() for p in model.parameters())
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
print(WHERE, f"{parameters / 1e6:.0f} M parameters, {sorted(times[-4:])[2]:.2f} s a step, peak "
      f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB, "
      f"{digest.hexdigest()[:12]}")
