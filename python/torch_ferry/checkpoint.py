"""Activation checkpointing by the C++ core, with the meaning of torch.utils.checkpoint."""

from torch.utils import checkpoint as _pytorch

from . import _C, _recording, policies


def checkpoint(function, *args, use_reentrant=False, preserve_rng_state=True, context_fn=None,
               determinism_check="default", debug=False, early_stop=True, policy=None, **kwargs):
    """Runs `function(*args, **kwargs)` so that what it saves for backward is computed again there.

    In the place of `torch.utils.checkpoint.checkpoint`, whose arguments it takes (`use_reentrant`
    is False by default). Tensors among the arguments are saved as a node saves its inputs, by the
    hooks in force: under `torch_ferry.offload` they go to the host.

    policy   what becomes of what single ops make: {"aten::addmm": "save", "aten::silu": "offload"}
             (what is not listed is computed again), a list of the ops to save, or a function of
             the op's name and its number among the calls of that op, which returns "save",
             "offload" or "recompute", or PyTorch's CheckpointPolicy. Ops may be torch.ops.aten.….
             "offload" gives it to the hooks around the call. An op that did not run in the first
             call is told in a warning.

    Around the call, `set_checkpoint_early_stop` and `set_checkpoint_debug_enabled` of
    torch.utils.checkpoint override the arguments, as they do PyTorch's; backwards within its
    `GraphExecGroup` share a recompute.

    In a capture (`torch_ferry.capture`, `torch_ferry.plan`) it runs the function as it is, and is
    one of the segments that a plan recomputes or does not.

    Raises `CheckpointError` where a recompute saves other tensors than forward did, or where a
    tensor from outside (a closure's, a buffer) that `function` read has been written in place since
    and would be read as it is now; `determinism_check="none"` compares neither. ValueError for
    options that contradict each other, and what `function` raises.
    """
    if capture := _recording.trace():
        if use_reentrant:  # as PyTorch's own is recorded
            return _pytorch.checkpoint(function, *args, use_reentrant=True)
        with capture.segment(args, kwargs):
            return function(*args, **kwargs)
    if use_reentrant:
        if debug or context_fn is not None or policy is not None:
            raise ValueError("Passing `context_fn`, `policy` or `debug` is only supported when "
                             "use_reentrant=False.")
        return _C.checkpoint_reentrant(function, args, kwargs, preserve_rng_state,
                                       determinism_check)
    policy, looked = policies.first_call(policies.understood(policy))
    result = _C.checkpoint(function, args, kwargs, preserve_rng_state, determinism_check,
                           _overridden("_checkpoint_debug_enabled", debug),
                           _overridden("_enable_checkpoint_early_stop", early_stop),
                           context_fn, policy)
    if looked is not None:
        looked()
    return result


def _overridden(name, argument):
    override = getattr(_pytorch, name, None)
    return argument if override is None else override


def is_checkpointing():
    """Whether the calling thread is in a checkpointed function that runs for the first time."""
    return _C.is_checkpointing()


def is_recomputing():
    """Whether the calling thread is in a checkpointed function that runs again, for backward, or in
    what that calls. Both are true in a checkpoint within one that runs again."""
    return _C.is_recomputing()


def checkpoint_statistics():
    """Counts of all checkpoints of this process. They print as a line."""
    return _C.checkpoint_statistics()
