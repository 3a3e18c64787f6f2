"""Calls of torch.utils.checkpoint in a capture: they run as they are, and are segments of the
program, which a plan recomputes or keeps.

Whoever calls it may have taken hold of `checkpoint` long ago (Hugging Face's
`gradient_checkpointing_enable` does), so what is replaced is what it calls itself, for each of its
two kinds. What a context_fn would keep is not told: a plan recomputes the whole of a call, or
nothing of it.
"""

import contextlib
import inspect
from unittest import mock

import torch
from torch.utils import checkpoint as pytorch

# What `checkpoint` calls for the kind that is not reentrant. Where PyTorch has the first (since
# 2.14), the second only calls it. The arguments of both have the names "args" and "kwargs".
NOT_REENTRANT = next(name for name in ("_checkpoint_without_reentrant_generator_impl",
                                       "_checkpoint_without_reentrant_generator")
                     if hasattr(pytorch, name))


@contextlib.contextmanager
def are_recorded(trace):
    signature = inspect.signature(getattr(pytorch, NOT_REENTRANT))

    def not_reentrant(*given, **named):
        """PyTorch runs the function itself, between the two steps of this generator."""
        bound = signature.bind(*given, **named).arguments
        trace.foreign = True
        with trace.segment(bound.get("args", ()), bound.get("kwargs", {})):
            yield

    class Reentrant:
        @staticmethod
        def apply(function, preserve, *args):
            trace.foreign = True
            with contextlib.ExitStack() as stack:
                if _needs_gradient(args):
                    stack.enter_context(trace.segment(args, {}))
                else:  # no gradient comes out of such a call, whatever it closes over
                    stack.enter_context(torch.no_grad())
                return function(*args)

    with mock.patch.object(pytorch, NOT_REENTRANT, not_reentrant), \
            mock.patch.object(pytorch, "CheckpointFunction", Reentrant):
        yield


def _needs_gradient(args):
    return any(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
