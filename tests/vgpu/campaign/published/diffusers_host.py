"""diffusers without a stream of its own: weights leave for the host by a copy that does not block,
and whoever reads them there (a checkpoint that is written) reads what has not arrived.
"""

import torch
from diffusers.hooks import apply_group_offloading
from given import SIZE, told

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(*SIZE, bias=False) for _ in range(3)))
wanted = [weight.detach().clone() for weight in model.parameters()]
apply_group_offloading(model, onload_device=torch.device("cuda"), offload_type="leaf_level",
                       non_blocking=True)
with torch.no_grad():
    for _ in range(2):
        model(torch.ones(SIZE, device="cuda"))
    assert all(weight.device.type == "cpu" for weight in model.parameters())
    told([weight.clone() for weight in model.parameters()], wanted)
