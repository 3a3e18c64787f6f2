"""PyTorch's save_on_cpu with page-locked memory, around two steps of a GPT-2."""

import contextlib

import torch
from tiny import gpt2, gradients, told, tokens


def trained(device, context):
    model = gpt2().to(device)
    batch = torch.stack([tokens(i) for i in range(4)]).to(device)
    for _ in range(2):
        model.zero_grad()
        with context():
            loss = model(batch, labels=batch).loss
        loss.backward()
    return gradients(model)


def pinned():
    return torch.autograd.graph.save_on_cpu(pin_memory=True)


told(trained("cuda", pinned), trained("cpu", contextlib.nullcontext))
