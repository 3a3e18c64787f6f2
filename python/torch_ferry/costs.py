"""The costs of an operator call for its line in a program: FLOPs, bytes, kernels, matrix products.

The counting is C++ (formats/op_costs.h, which says what is counted); real/op_costs exports it to
Python, and its structs are repeated here. Python counts only the FLOPs of operators that PyTorch's
flop counter knows and Ferry does not, such as operators of other libraries with a formula.
"""

import ctypes
import functools
from ctypes import POINTER, c_bool, c_char_p, c_int64, c_uint32, c_uint64

from torch.utils.flop_counter import flop_registry

from . import objects
from .op_call import arguments_of, dtype_name

SOURCES = ("formats/op_call.cpp", "formats/op_costs.cpp", "formats/op_products.cpp",
           "formats/op_puts.cpp", "formats/layout.cpp", "real/op_costs/op_costs.cpp")


class _Tensor(ctypes.Structure):
    _fields_ = [("dtype", c_char_p), ("dims", c_uint64), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("offset", c_int64)]


class _Argument(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p), ("flag", c_bool)]


class _Call(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("inputs", c_uint64), ("outputs", c_uint64),
                ("writes", c_uint64), ("arguments", c_uint64), ("in_", POINTER(_Tensor)),
                ("out", POINTER(_Tensor)), ("written", POINTER(c_uint32)),
                ("given", POINTER(_Argument))]


class _Costs(ctypes.Structure):
    _fields_ = [("flops", c_int64), ("read", c_int64), ("written", c_int64), ("kernels", c_int64),
                ("products", c_uint64), ("product", c_int64 * 5 * 2)]


@functools.cache
def _library():
    library = objects.load("_op_costs.so", SOURCES, (),
                           ": capture with an installed or built torch_ferry")
    library.ferry_op_costs.argtypes = [POINTER(_Call), POINTER(_Costs)]
    library.ferry_op_costs.restype = None
    return library


def cost(func, args, kwargs, result, inputs, written, fresh):
    """Returns the costs of one call, as the keys of its line in a program. `inputs` and `fresh` are
    tensors; `written` has positions in `inputs`."""
    packet = func._overloadpacket
    given = [argument for name, value in arguments_of(func, args, kwargs)
             if (argument := _argument(name, value)) is not None]
    call = _Call(f"{func.namespace}.{packet.__name__}".encode(), len(inputs), len(fresh),
                 len(written), len(given), _array(_Tensor, map(_tensor, inputs)),
                 _array(_Tensor, map(_tensor, fresh)), _array(c_uint32, written),
                 _array(_Argument, given))
    costs = _Costs()
    _library().ferry_op_costs(ctypes.byref(call), ctypes.byref(costs))
    flops = costs.flops
    if not flops and packet in flop_registry and all(tensor.numel() for tensor in inputs):
        flops = int(flop_registry[packet](*args, **kwargs, out_val=result))
    said = {"flops": flops, "read": costs.read, "written": costs.written}
    if costs.kernels != 1:
        said["kernels"] = costs.kernels
    products = [list(product) for product in costs.product[:costs.products]]
    if products:
        said["matmul"] = products[0][:4] if len(products) == 1 else [each[:4] for each in products]
        if len(products) == 1 and products[0][4] != 16:
            said["aligned"] = products[0][4]
    return {key: value for key, value in said.items() if value}


def _array(kind, values):
    values = tuple(values)
    return (kind * len(values))(*values)


def _tensor(tensor):
    return _Tensor(dtype_name(tensor.dtype).encode(), tensor.dim(),
                   _array(c_int64, map(int, tensor.shape)),
                   _array(c_int64, map(int, tensor.stride())), int(tensor.storage_offset()))


def _argument(name, value):
    """Returns the struct of a bool or a text, else None: only these decide which kernels run."""
    if isinstance(value, bool):
        return _Argument(name.encode(), None, value)
    return _Argument(name.encode(), value.encode(), False) if isinstance(value, str) else None
