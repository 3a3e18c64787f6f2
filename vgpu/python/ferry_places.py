"""Notes where a program is before PyTorch lets go of the interpreter's lock.

Without that lock C++ cannot read Python's frames, so operations would get an earlier place in the
log (vgpu/python/places.h). Covered are waits for streams, events and devices, and backward.
"""

import functools

import torch
from torch.autograd import graph


def find(library):
    """Makes calls that wait without the interpreter's lock note their place first. Work of
    backward in other threads gets the place that called backward.
    """
    def noted(call):
        @functools.wraps(call)
        def at_its_place(*arguments, **named):
            library.ferry_vgpu_note_place()
            return call(*arguments, **named)
        return at_its_place

    torch._C._cuda_synchronize = noted(torch._C._cuda_synchronize)
    torch.cuda.Stream.synchronize = noted(torch.cuda.Stream.synchronize)
    torch.cuda.Event.synchronize = noted(torch.cuda.Event.synchronize)
    torch.cuda.Event.wait = noted(torch.cuda.Event.wait)

    run = graph._engine_run_backward

    @functools.wraps(run)
    def run_backward(*arguments, **named):
        library.ferry_vgpu_begin_backward()
        try:
            return run(*arguments, **named)
        finally:
            library.ferry_vgpu_end_backward()

    graph._engine_run_backward = torch.autograd._engine_run_backward = run_backward
