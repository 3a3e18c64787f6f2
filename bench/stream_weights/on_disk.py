"""A LoRA on the CPU with its frozen weights on disk: peak of the process and time of a step.

    python on_disk.py WHERE [LAYERS]

WHERE: `memory`, or a folder for the weights. The model has the sizes of Qwen2.5-1.5B with 32,000
words, in bfloat16, adapters of rank 8 at all linear layers, and all layers checkpointed. A step has
512 tokens. Prints the GiB of the process before the steps and at their peak, the last step's
seconds, and what both ways must have in common: its loss, and the sum of the adapters.
"""

import ctypes
import gc
import sys
import time

import torch
import transformers
from lora import adapt

import torch_ferry as ferry

WHERE, LAYERS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 28
STEPS, RANK = 3, 8


def peak():
    """Returns the most GiB of the process since the last call, or nearly: it begins anew here."""
    with open("/proc/self/status", encoding="ascii") as status:
        kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
        reset.write("5")
    return kib / 2**20


torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)
model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
    hidden_size=1536, intermediate_size=8960, num_hidden_layers=LAYERS, num_attention_heads=12,
    num_key_value_heads=2, vocab_size=32000, use_cache=False,
    tie_word_embeddings=True)).requires_grad_(False)
adapt(model, RANK)
if WHERE != "memory":
    ferry.stream_weights(model, disk=WHERE)
    time.sleep(30)  # until all is written
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(trained, lr=0.1)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
peak()
before = peak()
for step in range(STEPS):
    begun = time.monotonic()
    torch.manual_seed(step)
    ids = torch.randint(0, 32000, (1, 512))
    loss = model(ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"{before:.2f} GiB, peak {peak():.2f} GiB, {time.monotonic() - begun:.1f} s, {loss.item()}, "
      f"{sum(p.double().sum().item() for p in trained)}")
