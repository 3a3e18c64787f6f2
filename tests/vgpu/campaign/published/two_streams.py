"""TRL as it is: two branches of a model on two streams. What one branch has saved leaves the window
when the other one packs, whose stream waits for the copy; the memory goes back to the first stream,
which does not wait.
"""

import math

import torch
from given import SIZE, told
from trl.models.activation_offloading import OffloadActivations

LAYERS = 6


class Times(torch.autograd.Function):
    """Its gradient takes what it saved: a tensor of one number."""

    @staticmethod
    def forward(ctx, x, number):
        ctx.save_for_backward(torch.full_like(x, number))
        return number * x

    @staticmethod
    def backward(ctx, gradient):
        (numbers,) = ctx.saved_tensors
        return gradient * numbers, None


def forward(x, streams):
    outputs, begun = [x, x], torch.cuda.current_stream()
    for stream in streams:
        stream.wait_stream(begun)
    for layer in range(1, LAYERS + 1):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                outputs[i] = Times.apply(outputs[i], layer)
    for stream in streams:
        begun.wait_stream(stream)
    return outputs[0].sum() + outputs[1].sum()


x = torch.ones(SIZE, device="cuda", requires_grad=True)
with OffloadActivations(min_offload_size=1, max_fwd_stash_size=1):
    loss = forward(x, (torch.cuda.Stream(), torch.cuda.Stream()))
    loss.backward()
told([x.grad], [torch.full(SIZE, 2.0 * math.factorial(LAYERS))])
