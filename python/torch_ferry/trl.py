"""What TRL's activation offloading offers, done by Ferry's core: one import line changes.

    from torch_ferry.trl import OffloadActivations, get_act_offloading_ctx_manager

With one of TRL's trainers, leave `activation_offloading=False` and hand it the context before
`train()`:

    trainer.maybe_activation_offload_context = get_act_offloading_ctx_manager(trainer.model)

Models trl/models/activation_offloading.py of TRL 1.16: the same arguments, the same tensors left
alone. Not the same: what comes back is brought ahead of its use (TRL does so when it is asked for);
tensors of the CPU move where there is no accelerator, and TRL raises there; the tracker and stashes
of TRL's class are not there (see `statistics()`); leaving the context does not wait for the device.
"""

import logging

import torch

from .heads import leave_alone, left_alone, output_head
from .offload import no_offload, offload

__all__ = ["NoOpManager", "OffloadActivations", "get_act_offloading_ctx_manager"]


class OffloadActivations:
    """A context, entered once a step: what autograd saves under it goes to host memory, and is back
    before backward needs it. Parameters stay.

    Args:
        use_pin_memory: page-locked host memory (CUDA).
        use_streams: copy beside the computation. False: each tensor is copied when it is saved and
            when it is used, and the computation waits.
        min_offload_size: bytes; smaller tensors stay.
        max_fwd_stash_size: how many tensors on their way to the host may still be on the device.

    Raises ValueError where max_fwd_stash_size is below 1.
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
        """The model's parameters stay where they are, sharded ones (FSDP2's) included."""
        for parameter in model.parameters():
            self._offload.exempt(getattr(parameter, "_local_tensor", parameter))

    def statistics(self):
        """What was moved since this was made; prints itself."""
        return self._offload.statistics()

    def empty(self):
        """Whether nothing is left of the steps so far: no copy, no reference."""
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
    """An OffloadActivations for the model, which leaves its head alone from now on.

    Warns where no head is found, unless warn_if_no_head is False.
    """
    context = OffloadActivations(use_pin_memory, use_streams, min_offload_size, max_fwd_stash_size)
    context.update_model_params(model)
    if output_head(model) is None and warn_if_no_head:
        logging.getLogger(__name__).warning(
            "no output head was found in %s: what it saves is offloaded as well, which is slow "
            "where the vocabulary is large. Name it `output` or `lm_head`, or pass "
            "warn_if_no_head=False", type(model).__name__)
    for module in left_alone(model):
        leave_alone(module)
    return context
