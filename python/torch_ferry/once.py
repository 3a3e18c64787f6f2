"""Decides which calls of operators a replay must not run again.

These calls may do more than their schema says, or give another result the second time. The rules
are those of real/api/replayed_op.cpp, which decides when a plan is executed. Not run again:
operators of other libraries (it is unknown if they use random numbers or write), operators that
give a tensor other memory, batch norms that read their running statistics, and calls with arguments
that the core cannot take apart.
"""

SECRETIVE = ("set_", "resize", "_resize", "rrelu_with_noise", "_cudnn_rnn",
             "_cudnn_init_dropout_state", "miopen_rnn")
STATISTICS = {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"}
APART = {"Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]",
         "Optional[List[Tensor]]"}


def runs_once(func, args, kwargs):
    """Returns True if a replay must not run this call of the overload `func`."""
    schema = func._schema
    namespace, name = schema.name.split("::")
    if namespace != "aten" or name.startswith(SECRETIVE):
        return True
    if name in STATISTICS:  # in training a replay runs it on copies of the statistics
        given = {argument.name: value for argument, value in zip(schema.arguments, args)} | kwargs
        return not given["training"] and given["running_mean"] is not None
    return any(_refuses(argument) for argument in schema.arguments)


def _refuses(argument):
    if argument.name == "running_mean":
        return True
    info = argument.alias_info
    if argument.kwarg_only and info is not None and info.is_write:
        return True
    kind = str(argument.type)
    return "Tensor" in kind and kind not in APART
