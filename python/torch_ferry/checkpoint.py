"""Activation checkpointing in the C++ core, with the semantics of torch.utils.checkpoint.

Use it in place of PyTorch's where Ferry should offload the arguments of the checkpointed function,
or where a plan should choose which calls are recomputed.
"""

from torch.utils import checkpoint as _pytorch

from . import _C, _recording, policies


def checkpoint(function, *args, use_reentrant=False, preserve_rng_state=True, context_fn=None,
               determinism_check="default", debug=False, early_stop=True, policy=None, **kwargs):
    """Runs `function(*args, **kwargs)` and recomputes it in backward instead of saving activations.

    It replaces `torch.utils.checkpoint.checkpoint` and takes the same arguments, with
    `use_reentrant` False by default. Tensors among the arguments are saved by the saved-tensor
    hooks in force: under `torch_ferry.offload` they are copied to the host.

    policy   what to do with the results of single operators: a dict such as
             {"aten::addmm": "save", "aten::silu": "offload"} (others are recomputed), a list of
             operators to save, or a function. The function gets the operator's name and the number
             of earlier calls of this operator, and returns "save", "offload", "recompute" or a
             CheckpointPolicy of PyTorch. Operators may also be given as torch.ops.aten.…. "offload"
             passes the result to the hooks around the call. A warning names each operator that did
             not run in the first call

    Around the call, `set_checkpoint_early_stop` and `set_checkpoint_debug_enabled` of
    torch.utils.checkpoint override the arguments, as in PyTorch. Backwards in one `GraphExecGroup`
    share a recompute.

    In a capture (`torch_ferry.capture`, `torch_ferry.plan`) the function runs without a recompute,
    and the call is recorded as a segment, which a plan may recompute or not.

    Raises `CheckpointError` in backward if the recompute saves other tensors than forward did, or
    if a tensor from outside that `function` read (of a closure, a buffer) was written in place
    since; `determinism_check="none"` turns off both checks. Raises ValueError if options contradict
    each other, and whatever `function` raises.
    """
    if capture := _recording.trace():
        if use_reentrant:  # it is recorded like PyTorch's own
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
    """Returns True if the calling thread is in the first run of a checkpointed function."""
    return _C.is_checkpointing()


def is_recomputing():
    """Returns True if the calling thread is in a checkpointed function that is being recomputed.

    In a checkpoint inside one that is being recomputed, `is_checkpointing` is True as well."""
    return _C.is_recomputing()


def checkpoint_statistics():
    """Returns the counts of all checkpoints of this process. `print` shows them as a line."""
    return _C.checkpoint_statistics()
