"""Finds an extension's operators under `ferry run` (vgpu/operators/extensions.h).

Nothing reports when the kernels of an extension are registered. So each time Python has looked an
operator up or registered a kernel, and may call the operator next, the library looks for them. It
stays in force for the rest of the process.

A stand-in is registered as the CPU kernel of an operator of its own, with the same schema. So
PyTorch itself converts its arguments and results.
"""

import ctypes
import functools
import re

import torch


def checked(function):
    """A function of the library's that returns an error message or null."""
    function.restype = ctypes.c_char_p

    def call(*texts):
        error = function(*(text.encode() for text in texts))
        if error:
            raise RuntimeError(error.decode())
    return call


def watch(library):
    look = checked(library.ferry_vgpu_look_for_extensions)
    note_python_kernel = checked(library.ferry_vgpu_note_python_kernel)
    look_up, impl = torch._ops._OpNamespace.__getattr__, torch.library.Library.impl

    @functools.wraps(look_up)
    def then_look(*arguments, **named):
        found = look_up(*arguments, **named)
        look()
        return found

    @functools.wraps(impl)
    def then_note(owner, op_name, fn, dispatch_key="", **named):
        impl(owner, op_name, fn, dispatch_key, **named)
        if (dispatch_key or owner.dispatch_key) == "CPU":
            note_python_kernel(full_name(owner.ns, op_name))
        look()

    torch._ops._OpNamespace.__getattr__ = then_look
    torch.library.Library.impl = then_note


def full_name(space, operator):
    """`space::name.overload`, of a name or of an operator as Library.impl takes them."""
    if isinstance(operator, torch._ops.OpOverload):
        schema = operator._schema
        return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    return operator if "::" in operator else f"{space}::{operator}"


def find(name):
    """Returns the operator of this name, an OpOverload, or raises a ValueError."""
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    try:
        packet = getattr(getattr(torch.ops, space), base)
        return getattr(packet, overload or packet.overloads()[0])
    except (AttributeError, IndexError):
        raise ValueError(f'stand_in: expected a registered operator such as "space::name", got '
                         f'"{name}"; import its library first') from None


class StandIns:
    """Called as torch_ferry.virtual.stand_in."""

    def __init__(self, library):
        self._set = checked(library.ferry_vgpu_set_stand_in)
        self._made = []  # a Library's operators last as long as the object

    def __call__(self, name, function):
        if not callable(function):
            raise TypeError(f"stand_in({name!r}, …): expected a function, got {function!r}")
        operator = find(name)
        # An annotation without a name, as in "Tensor! out", prints as "($0! -> )".
        schema = re.sub(r"\(\$(\d+)! -> [^)]*\)", r"(a\1!)", str(operator._schema))
        own = f"n{len(self._made)}_{operator._schema.name.replace('::', '_')}"
        library = torch.library.Library("ferry_stand_in", "FRAGMENT")
        library.define(own + schema[schema.index("("):])
        library.impl(own, function, "CPU")
        self._made.append(library)
        self._set(full_name("", operator), f"ferry_stand_in::{own}")
