"""The matrix products that an op's kernels compute, and its FLOPs.

The twin of formats/op_products.h, which says how a convolution is one. FLOPs of causal attention
are those of the pairs that the mask leaves, for its kernels skip the others.
"""

import torch
from torch.utils.flop_counter import flop_registry

from .op_call import argument

ATTENTION = "_scaled_dot_product"


def flops_and_products(func, args, kwargs, result, inputs, fresh):
    """(FLOPs, what a line says of its products)."""
    packet = func._overloadpacket
    name = packet.__name__
    if name in ("convolution", "convolution_backward"):
        if not fresh:
            return 0, {}
        transposed = argument(func, args, kwargs, "transposed", False)
        return _convolution(name.endswith("_backward"), transposed, inputs, fresh)
    if name == "_grouped_mm":
        return _grouped_product(*args[:2]), {}
    if packet not in flop_registry:
        return 0, {}
    heads = _ungrouped(args) if name.startswith(ATTENTION) else args
    flops = int(flop_registry[packet](*heads, **kwargs, out_val=result))
    if name.startswith(ATTENTION) and argument(func, args, kwargs, "is_causal", False):
        queries, keys = (t.shape[-2] for t in args[name.endswith("_backward"):][:2])
        flops = flops * _causal_pairs(queries, keys) // (queries * keys)
    return flops, _matrix_product(name, inputs, fresh)


def _convolution(backward, transposed, inputs, fresh):
    image, weight = inputs[backward:][:2]
    output = inputs[0] if backward else fresh[0]
    small, other = (image, output) if transposed else (output, image)
    places = small.shape[0] * small.shape[2:].numel()
    to, per_group, taps = weight.shape[0], weight.shape[1], weight.shape[2:].numel()
    onto = [1, places, to, per_group * taps]
    back = [1, places, per_group, to * taps]
    if backward:
        whole = [t for t in fresh if t.dim() == weight.dim()]
        of_weight = len(whole) == 2 or len(whole) == 1 and whole[0].shape == weight.shape
        of_input = len(whole) == 2 or len(whole) == 1 and not of_weight
        products = ([onto if transposed else back] * of_input
                    + [[1, to, per_group * taps, places]] * of_weight)
    else:
        products = [back if transposed else onto]
    flops = len(products) * 2 * places * to * per_group * taps
    if other.shape[1] != per_group or not flops:  # grouped, or nothing
        return flops, {}
    return flops, {"matmul": products[0] if len(products) == 1 else products}


def _matrix_product(name, inputs, fresh):
    if name not in ("mm", "bmm", "addmm", "baddbmm"):
        return {}
    a, b = inputs[-2:]
    if a.numel() == 0 or b.numel() == 0:
        return {}
    said = {"matmul": [a[..., 0, 0].numel(), a.shape[-2], b.shape[-1], a.shape[-1]]}
    aligned = min(map(_aligned_bytes, (a, b, *fresh[:1])))
    return said if aligned == 16 else {**said, "aligned": aligned}


def _aligned_bytes(matrix):
    """At what power of 2, of at most 16 bytes, each row of a matrix begins, whichever of its last
    two dimensions the rows lie along. One that has gaps in both is copied before it is
    multiplied."""
    strides = matrix.stride()
    along = -1 if strides[-1] == 1 else -2
    if strides[along] != 1:
        return 16
    places = matrix.storage_offset()
    for at in range(-matrix.dim(), 0):
        if at != along and matrix.shape[at] > 1:
            places |= strides[at]
    places = places * matrix.element_size() | 16
    return max(places & -places, 2)


def _causal_pairs(queries, keys):
    """That a causal mask leaves: its diagonal begins at the first of both."""
    triangle = min(queries, keys)
    return triangle * (triangle + 1) // 2 + (queries - triangle) * keys


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
