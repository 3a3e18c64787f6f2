"""What an op costs: FLOPs, bytes read, bytes written.

FLOPs are PyTorch's own formulas (torch.utils.flop_counter): matmuls, convolutions, attention. They
count causal attention in full. Everything else is bound by bandwidth: bytes of the distinct
elements of its tensor arguments and results. Ops that look at a part of an argument only, or at
nothing but its shape, are listed by name below; a gather reads as much as it returns.
"""

import torch
from torch.utils.flop_counter import flop_registry

SHAPE_ONLY = {
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like",
    "new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided", "lift_fresh",
}
WRITES_NOTHING = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
OVERWRITES = {"copy_", "zero_", "fill_", "normal_", "uniform_", "bernoulli_", "random_",
              "exponential_"}
GATHERS = {"embedding", "index_select", "gather", "nll_loss_forward"}  # from the first argument
NOT_READ = {"nll_loss_backward": (1,)}  # its `self` gives the shape
ATTENTION = "_scaled_dot_product"


def distinct_bytes(tensor):
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= size if stride or size == 0 else 1
    return count * tensor.element_size()


def cost(func, args, kwargs, result, inputs, written, fresh):
    """(flops, read, written) of one call. `inputs`, `fresh`: tensors; `written`: of `inputs`."""
    packet = func._overloadpacket
    flops = 0
    name = packet.__name__
    if name == "_grouped_mm":
        flops = _grouped_product(*args[:2])
    elif packet in flop_registry:
        heads = _ungrouped(args) if name.startswith(ATTENTION) else args
        flops = int(flop_registry[packet](*heads, **kwargs, out_val=result))
    writes = sum(map(distinct_bytes, fresh)) + sum(distinct_bytes(inputs[i]) for i in written)
    skipped = set(NOT_READ.get(name, ())) | (set(written) if name in OVERWRITES else set())
    reads = [distinct_bytes(t) for i, t in enumerate(inputs) if i not in skipped]
    if name in SHAPE_ONLY:
        reads = []
    elif name in GATHERS and reads and fresh:
        rows = sum(t.numel() for t in inputs[1:2]) * inputs[0].element_size()
        reads[0] = min(reads[0], rows if name == "nll_loss_forward" else distinct_bytes(fresh[0]))
    return flops, sum(reads), 0 if name in WRITES_NOTHING else writes


def _grouped_product(a, b):
    """Of matrices side by side in one, each with its own, as experts have them: each row of what is
    side by side is multiplied once, whatever group it is in."""
    batch = a.shape[0] if a.dim() == 3 and b.dim() == 3 else 1
    return 2 * batch * a.shape[-2] * a.shape[-1] * b.shape[-1]


def _ungrouped(args):
    """The shapes of attention's arguments, with as many heads of keys and values as of queries: the
    formulas know no groups, and each query is multiplied with some key all the same."""
    shapes = [a.shape if isinstance(a, torch.Tensor) else a for a in args]
    fours = [at for at, shape in enumerate(shapes[:4])
             if isinstance(shape, torch.Size) and len(shape) == 4]
    heads = max(shapes[at][1] for at in fours)
    for at in fours:
        batch, _, *rest = shapes[at]
        shapes[at] = torch.Size((batch, heads, *rest))
    return shapes


def tensors_of(func, args, kwargs):
    """The tensor arguments of a call in order, and the positions of those that it writes."""
    tensors, written = [], []
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        info = argument.alias_info
        for tensor in tensors_in(value):
            if info is not None and info.is_write:
                written.append(len(tensors))
            tensors.append(tensor)
    return tensors, written


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
