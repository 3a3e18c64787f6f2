"""Draws that PyTorch repeats until it likes the values, under `ferry run --no-values`.

Since 2.12 `torch.nn.init.trunc_normal_` draws anew what lies out of its bounds, and asks each time
whether anything does. Where nothing has values the first draw is liked: the host waits for the
answer, as it would, and does not look at it.
"""

import functools

import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode


class FirstIsLiked(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is not torch.Tensor.any:
            return result
        if result.is_cuda:
            torch.cuda.current_stream(result.device).synchronize()
        return False


def like_the_first():
    draw = init._no_grad_trunc_normal_

    @functools.wraps(draw)
    def draw_once(*arguments, **named):
        with FirstIsLiked():
            return draw(*arguments, **named)
    init._no_grad_trunc_normal_ = draw_once
