"""Keeps PyTorch from repeating random draws under `ferry run --no-values`.

Since 2.12 `torch.nn.init.trunc_normal_` draws again what lies outside its bounds, and checks each
time whether anything does. Without values the check means nothing, so the first draw is accepted.
The host waits for the result of the check, as it would on a GPU, but does not read it.
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
