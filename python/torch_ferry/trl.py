"""TRL's activation offloading, done by Ferry's core: only the import line changes.

    from torch_ferry.trl import OffloadActivations, get_act_offloading_ctx_manager

With a trainer of TRL, leave `activation_offloading=False` and set the context before `train()`:

    trainer.maybe_activation_offload_context = get_act_offloading_ctx_manager(trainer.model)

The arguments are those of trl/models/activation_offloading.py in TRL 1.16, and the same tensors
stay. The differences: tensors are copied back before backward needs them (TRL begins when they are
needed); without an accelerator, tensors on the CPU move (TRL raises); the tracker and the stashes
of TRL's class do not exist (see `statistics()`); leaving the context does not wait for the device.
"""

import logging

import torch

from .heads import leave_alone, left_alone, output_head
from .offload import no_offload, offload

__all__ = ["NoOpManager", "OffloadActivations", "get_act_offloading_ctx_manager"]


class OffloadActivations:
    """A context that moves saved tensors to the host. Enter it once in each step.

    The tensors are back before backward needs them. Parameters stay on the device.

    Args:
        use_pin_memory: use page-locked host memory (CUDA only).
        use_streams: copy while the device computes. False: each tensor is copied when it is saved
            and when it is used, and the computation waits.
        min_offload_size: tensors of fewer bytes stay on the device.
        max_fwd_stash_size: how many tensors may stay on the device while they are copied to the
            host.

    Raises ValueError if max_fwd_stash_size is below 1.
    """

    def __init__(self, use_pin_memory=True, use_streams=True, min_offload_size=1024,
                 max_fwd_stash_size=5):
        if use_streams and max_fwd_stash_size < 1:
            raise ValueError(f"max_fwd_stash_size should be at least 1 but is {max_fwd_stash_size}")
        options = {"min_bytes": min_offload_size, "pinned": use_pin_memory}
        if use_streams:
            options["window_tensors"] = max_fwd_stash_size
        else:
            options |= {"window": 0, "prefetch": 0, "hold": 0}
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        if accelerator is not None:
            options["device"] = accelerator
        self.use_pin_memory = use_pin_memory
        self.use_streams = use_streams
        self.min_tensor_size_bytes = min_offload_size
        self.max_fwd_stash_size = max_fwd_stash_size
        self._offload = offload(**options)

    def update_model_params(self, model):
        """Leaves the model's parameters where they are, including sharded ones (FSDP2)."""
        for parameter in model.parameters():
            self._offload.exempt(getattr(parameter, "_local_tensor", parameter))

    def statistics(self):
        """Returns the counts since this was made. `print` shows them as a line."""
        return self._offload.statistics()

    def empty(self):
        """Returns True if nothing is left of the steps so far: no copy, no reference."""
        return self._offload.empty()

    def __enter__(self):
        self._offload.__enter__()

    def __exit__(self, *error):
        return self._offload.__exit__(*(error or (None, None, None)))


class NoOpManager:
    """A context under which nothing is offloaded."""

    def __init__(self):
        self._none = no_offload()

    def __enter__(self):
        self._none.__enter__()

    def __exit__(self, *error):
        return self._none.__exit__(*(error or (None, None, None)))


def get_act_offloading_ctx_manager(model, use_pin_memory=True, use_streams=True,
                                   min_offload_size=1024, max_fwd_stash_size=5,
                                   warn_if_no_head=True):
    """Returns an OffloadActivations for the model. The model's head is not offloaded from now on.

    Logs a warning if no head is found, unless warn_if_no_head is False.
    """
    context = OffloadActivations(use_pin_memory, use_streams, min_offload_size, max_fwd_stash_size)
    context.update_model_params(model)
    if output_head(model) is None and warn_if_no_head:
        logging.getLogger(__name__).warning(
            "no output head was found in %s: what the head saves is offloaded as well, which is "
            "slow if the vocabulary is large. Name the head `output` or `lm_head`, or pass "
            "warn_if_no_head=False", type(model).__name__)
    for module in left_alone(model):
        leave_alone(module)
    return context
