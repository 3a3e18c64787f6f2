"""Activation checkpointing by the C++ core, with the meaning of torch.utils.checkpoint."""

from . import _C


def checkpoint(function, *args, use_reentrant=False, preserve_rng_state=True, context_fn=None,
               determinism_check="default", debug=False, early_stop=True, policy=None, **kwargs):
    """Runs `function(*args, **kwargs)` so that what it saves for backward is computed again there.

    In the place of `torch.utils.checkpoint.checkpoint`, whose arguments it takes (`use_reentrant`
    is False by default). Tensors among the arguments are saved as a node saves its inputs, by the
    hooks in force: under `torch_ferry.offload` they go to the host.

    policy   what becomes of what single ops make: {"aten::mm": "save", "aten::silu": "offload"}
             (what is not listed is computed again), a list of the ops to save, or a function of
             the op's name and its number among the calls of that op, which returns "save",
             "offload" or "recompute". "offload" gives it to the hooks around the call.

    Raises `CheckpointError` where a recompute saves other tensors than forward did, ValueError for
    options that contradict each other, and what `function` raises.
    """
    if use_reentrant:
        if debug or context_fn is not None or policy is not None:
            raise ValueError("Passing `context_fn`, `policy` or `debug` is only supported when "
                             "use_reentrant=False.")
        return _C.checkpoint_reentrant(function, args, kwargs, preserve_rng_state)
    if isinstance(policy, (list, tuple, set)):
        policy = {_name(op): "save" for op in policy}
    elif isinstance(policy, dict):
        policy = {_name(op): choice for op, choice in policy.items()}
    return _C.checkpoint(function, args, kwargs, preserve_rng_state, determinism_check, debug,
                         early_stop, context_fn, policy)


def _name(op):
    """The dispatcher's name of an op: torch.ops.aten.mm.default is "aten::mm"."""
    name = op if isinstance(op, str) else op.name()
    return name.removesuffix(".default")


def checkpoint_statistics():
    """Counts of all checkpoints of this process. They print as a line."""
    return _C.checkpoint_statistics()
