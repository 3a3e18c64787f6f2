"""Handles random numbers that PyTorch draws again until it accepts them.

Since 2.12 `torch.nn.init.trunc_normal_` draws again the numbers that are out of its bounds, and
asks each time if there are any. In a capture random numbers have no values, so the first draw is
accepted. Nothing has to be known or assumed for it.
"""

import sys

from torch.nn import init

REPEATING = (init._no_grad_trunc_normal_.__code__,)


def is_asked_for():
    """Returns True if one of these functions now asks if it has to draw again."""
    frame = sys._getframe()
    while frame is not None and frame.f_code not in REPEATING:
        frame = frame.f_back
    return frame is not None
