"""TRL #7195, and torchtune as it is: computed on a stream that is not the default one. An offloader
that asks for the compute stream once, or takes the default one for it, orders nothing by its waits.

    side_stream.py trl|torchtune
"""

import sys

import torch
from given import Scale, gradient, told, torchtunes_offloading


def offloading():
    if sys.argv[1] == "torchtune":
        return torchtunes_offloading()
    from trl.models.activation_offloading import OffloadActivations
    return OffloadActivations


def chain(x):
    for _ in range(6):
        x = Scale.apply(x.sin())
    return x


offload = offloading()(min_offload_size=1, max_fwd_stash_size=1)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    got = gradient(chain, "cuda", offload)
side.synchronize()
told([got], [gradient(chain, "cpu")])
