"""torchtune #1860: a node's gradient is a view of what it saved. The copy on the device is read
after the node has ended, so an event at its end does not tell when it may be written over.
"""

import torch
from given import Scale, gradient, told, torchtunes_offloading


class Hands(torch.autograd.Function):
    """Its gradient is what it saved, seen otherwise."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.full_like(x, 5))
        return x.clone()

    @staticmethod
    def backward(ctx, _):
        (kept,) = ctx.saved_tensors
        return kept.t()


def chain(x):
    y = Hands.apply(Scale.apply(Scale.apply(Scale.apply(x))))
    return Scale.apply(Scale.apply(y))


offload = torchtunes_offloading()(max_fwd_stash_size=1)
told([gradient(chain, "cuda", offload)], [gradient(chain, "cpu")])
