"""Reads a call of an operator: its tensors, its arguments by name, and the names of dtypes.

A capture needs these for the operator's line in a program (`torch_ferry.trace`). They come from the
operator's schema, so nothing here knows single operators.
"""

import torch

from .program import ProgramError

DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint8: "u8", torch.bool: "bool", torch.uint64: "i64", torch.uint32: "i32",
    torch.uint16: "i16", torch.complex64: "f64", torch.complex32: "f32",
    torch.float8_e4m3fn: "f8", torch.float8_e5m2: "f8",
    torch.float8_e4m3fnuz: "f8", torch.float8_e5m2fnuz: "f8",
}


def dtype_name(dtype):
    """Returns the name of a dtype in program files. Some dtypes have the name of one of their size.
    """
    if dtype not in DTYPES:
        raise ProgramError(f"dtype {dtype} has no name in a program file")
    return DTYPES[dtype]


def tensors_of(func, args, kwargs):
    """Returns the tensor arguments of a call in order, and the positions of those it writes."""
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


def arguments_of(func, args, kwargs):
    """Yields (name, value) of each argument; the value is the default if the call gives none."""
    for position, argument in enumerate(func._schema.arguments):
        given = args[position] if position < len(args) else kwargs.get(argument.name)
        yield argument.name, argument.default_value if given is None else given
