"""A call of an op: its tensors, their bytes, and its other arguments."""

import torch


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


def argument(func, args, kwargs, name, otherwise):
    """What a call gives for an argument of this name."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            given = args[position] if position < len(args) else kwargs.get(name)
            return argument.default_value if given is None else given
    return otherwise


def distinct_bytes(tensor):
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= size if stride or size == 0 else 1
    return count * tensor.element_size()
