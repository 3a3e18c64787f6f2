"""accelerate's hooks: all weights on the host, each brought when its module runs; some modules on
the device and some on the host; and a model that leaves once the next one runs.
"""

import torch
from accelerate import cpu_offload, cpu_offload_with_hook, dispatch_model
from tiny import gpt2, told, tokens


@torch.no_grad()
def outputs(models, device):
    batch = torch.stack([tokens(i) for i in range(2)]).to(device)
    return [model(batch).logits for _ in range(2) for model in models]


def offloaded():
    return cpu_offload(gpt2(), execution_device=torch.device("cuda"))


def dispatched():
    model = gpt2()
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())
    devices = {"transformer.wte": 0, "transformer.wpe": 0, "transformer.drop": 0,
               "transformer.h.0": "cpu", "transformer.h.1": 0, "transformer.ln_f": "cpu",
               "lm_head": 0}
    return dispatch_model(model, devices, main_device=0, force_hooks=True)


def in_turn():
    first, hook = cpu_offload_with_hook(gpt2(), torch.device("cuda"))
    second, _ = cpu_offload_with_hook(gpt2(), torch.device("cuda"), prev_module_hook=hook)
    return [first, second]


models = [offloaded(), dispatched(), *in_turn()]
told(outputs(models, "cuda"), outputs([gpt2() for _ in models], "cpu"))
