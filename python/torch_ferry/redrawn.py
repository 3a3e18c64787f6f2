"""Draws that PyTorch repeats until it likes the values, where there are no values to like.

Since 2.12 `torch.nn.init.trunc_normal_` draws anew what lies out of its bounds, and asks each time
whether anything does. In a capture what was drawn stands for any values, and the first draw is
liked: nothing has to be known or assumed for it.
"""

import sys

from torch.nn import init

REPEATING = (init._no_grad_trunc_normal_.__code__,)


def is_asked_for():
    """Whether one of these functions is what asks for a value now: whether to draw again."""
    frame = sys._getframe()
    while frame is not None and frame.f_code not in REPEATING:
        frame = frame.f_back
    return frame is not None
