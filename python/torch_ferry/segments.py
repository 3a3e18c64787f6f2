"""Records the calls of torch.utils.checkpoint in a capture.

Each call runs without a recompute and becomes a segment of the program, which a plan recomputes or
keeps. Callers may have kept a reference to `checkpoint` (Hugging Face's
`gradient_checkpointing_enable` does). So the function that `checkpoint` itself calls is replaced,
for each of its two kinds. What a context_fn would save is not recorded: a plan recomputes a whole
call or nothing of it.

Under `layers_are_marked`, layers of transformers that are not checkpointed are marked too, with
what a checkpoint of them would save. So a plan may recompute them, and a Trainer can execute it.
"""

import contextlib
import contextvars
import inspect
import sys
from unittest import mock

import torch
from torch.utils import checkpoint as pytorch

# The function that `checkpoint` calls if it is not reentrant. In versions with the first name (2.14
# and later), the second one only calls it. Both have arguments named "args" and "kwargs".
NOT_REENTRANT = next(name for name in ("_checkpoint_without_reentrant_generator_impl",
                                       "_checkpoint_without_reentrant_generator")
                     if hasattr(pytorch, name))

_marked = contextvars.ContextVar("layers are marked", default=False)


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
                else:  # such a call gives no gradients, not even to what its function closes over
                    stack.enter_context(torch.no_grad())
                return function(*args)

    with mock.patch.object(pytorch, NOT_REENTRANT, not_reentrant), \
            mock.patch.object(pytorch, "CheckpointFunction", Reentrant):
        yield


@contextlib.contextmanager
def layers_are_marked():
    """A context in which captures mark the layers that `may_be_called`."""
    token = _marked.set(True)
    try:
        yield
    finally:
        _marked.reset(token)


def may_be_called(module):
    """Returns True if transformers would call the module by a checkpoint, if its gradient
    checkpointing was on. Such a call saves the positional arguments and captures the others."""
    found = sys.modules.get("transformers.modeling_layers")
    return _marked.get() and hasattr(found, "GradientCheckpointingLayer") and \
        isinstance(module, found.GradientCheckpointingLayer) and torch.is_grad_enabled() and \
        module.training and not module.gradient_checkpointing


def _needs_gradient(args):
    return any(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
