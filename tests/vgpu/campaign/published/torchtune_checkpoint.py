"""torchtune #1867: what a checkpoint computes again saves a view of the copy that was brought back
for it, and a later node reads that. 0.4.0 looks for such a view among the gradients alone.
"""

import torch
from given import Scale, gradient, told, torchtunes_offloading
from torch.utils.checkpoint import checkpoint


class Squares(torch.autograd.Function):
    """Saves its input as a view that looks like it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.t().t())
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * gradient * x


def region(x):
    return Scale.apply(Squares.apply(x))


def chain(x):
    y = Scale.apply(Scale.apply(Scale.apply(x)))
    y = checkpoint(region, y, use_reentrant=False)
    return Scale.apply(Scale.apply(y))


offload = torchtunes_offloading()(max_fwd_stash_size=1)
told([gradient(chain, "cuda", offload)], [gradient(chain, "cpu")])
