"""Notes the graph behind every result while a step's forward runs.

Nodes keep saved tensors alive as long as their graph lives. The graph of a result that the forward
drops cannot be reached from the loss, so it must be noted while the result exists. In backward
nothing is noted.
"""

from torch.overrides import TorchFunctionMode

from .op_call import tensors_in


class Results(TorchFunctionMode):
    """A mode that notes the graph of each result, also of branches that die in forward."""

    def __init__(self, trace):
        super().__init__()
        self.trace = trace

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if self.trace.sink is self.trace.events:
            for tensor in tensors_in(result):
                if tensor.requires_grad and tensor.grad_fn is not None:
                    self.trace.note(tensor.grad_fn)
        return result
