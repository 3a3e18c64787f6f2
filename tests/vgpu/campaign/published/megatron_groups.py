"""Megatron #7398: a group that nobody has brought back early is brought back where it is read, on
the compute stream, and nothing there waits for the copy that is still filling its host memory.

What the file takes of Megatron's others is stood in for: whether a CUDA graph is being captured,
and a switch of Transformer Engine.
"""

import contextlib
import sys
import types

import torch
from given import SIZE, leave_out, told

leave_out("megatron", "megatron.core", "megatron.core.pipeline_parallel")
for name, what in (("transformer.cuda_graphs", {"is_graph_capturing": lambda: False}),
                   ("extensions.transformer_engine", {"cpu_offload": types.SimpleNamespace()})):
    module = sys.modules[f"megatron.core.{name}"] = types.ModuleType(name)
    module.__dict__.update(what)
from megatron.core.pipeline_parallel.fine_grained_activation_offload import (  # noqa: E402
    FineGrainedActivationOffloadingInterface as Offloading)


def layer(x, weight):
    return (x @ weight).sin()


def offloaded(x, weight):
    with Offloading(True, x, "layer") as given:
        made = layer(given, weight)
    return Offloading.group_commit(made, "layer")


def gradients(device, call):
    weights = [torch.full(SIZE, (i + 1) / 64, device=device, requires_grad=True) for i in range(4)]
    x = torch.linspace(0, 1, SIZE[0] * SIZE[1], device=device).view(SIZE).requires_grad_()
    for weight in weights:
        x = call(x, weight)
    x.sum().backward()
    return [weight.grad for weight in weights]


Offloading.init_chunk_handler(1, None, min_offloaded_tensor_size=1)
with contextlib.redirect_stdout(sys.stderr):
    got = gradients("cuda", offloaded)
told(got, gradients("cpu", layer))
