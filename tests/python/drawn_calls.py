"""Calls of PyTorch's operators with shapes that a seed draws, and without values: meta tensors.

`CALLS` has for each operator that formats/op_costs.h names a function that draws one call: the
overload, and its arguments. Run as a program, this writes what they cost (test_costs.py).
"""

import json
import pathlib
import random

import torch

from torch_ferry.costs import cost
from torch_ferry.op_call import tensors_in, tensors_of

EACH = 4
RECORD = pathlib.Path(__file__).with_name("costs.jsonl")
aten = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


class Draws:
    """Tensors for one call, of one floating type."""

    def __init__(self, random):
        self.random = random
        self.dtype = random.choice(FLOATS)

    def size(self, most=12, least=1):
        return self.random.randint(least, most)

    def flag(self):
        return self.random.random() < 0.5

    def shape(self, dims=None):
        return [self.size() for _ in range(dims or self.size(4))]

    def tensor(self, shape, dtype=None):
        """Contiguous or transposed, expanded, a part of another one."""
        def made(sizes):
            return torch.empty(sizes, dtype=dtype or self.dtype, device="meta")
        way = self.random.randrange(6) if shape else 0
        if way == 1 and len(shape) > 1:
            return made([*shape[:-2], shape[-1], shape[-2]]).transpose(-1, -2)
        if way == 2:
            return made([1, *shape[1:]]).expand(shape)
        if way == 3:
            return made([*shape[:-1], shape[-1] + 3])[..., 1:-2]
        return made(shape)

    def plain(self, shape, dtype=None):
        return torch.empty(shape, dtype=dtype or self.dtype, device="meta")

    def whole(self, shape):
        return self.plain(shape, torch.int64)


CALLS = {}


def calls(*names):
    def add(function):
        for name in names:
            CALLS[name] = lambda draws, name=name: function(draws, getattr(aten, name), name)
        return function
    return add


@calls("mm", "addmm", "bmm", "baddbmm")
def matmul(d, op, name):
    batch = [d.size()] if "bmm" in name else []
    m, k, n = (d.size(400) for _ in range(3))
    given = [d.tensor([*batch, m, k]), d.tensor([*batch, k, n])]
    if "add" in name:
        bias = [n] if name == "addmm" and d.flag() else [*batch, m, n]
        given.insert(0, d.tensor(bias))
    return op.default, *given


@calls("_grouped_mm")
def grouped(d, op, _):
    groups, rows, k, n = d.size(8), 8 * d.size(), 8 * d.size(), 8 * d.size()
    d.dtype = torch.bfloat16
    return (op.default, d.plain([rows, k]), d.plain([groups, n, k]).transpose(1, 2),
            d.plain([groups], torch.int32))


def image_and_weight(d):
    dims, transposed = d.random.choice((1, 2, 3)), d.flag()
    groups = d.random.choice((1, 1, 2, 3))
    channels, to, filter = groups * d.size(6), groups * d.size(6), d.size(3)
    image = [d.size(3), channels, *(d.size(16, 6) for _ in range(dims))]
    weight = [channels, to // groups] if transposed else [to, channels // groups]
    stride, padding = [d.size(2)] * dims, [d.random.randrange(filter)] * dims
    bias = d.plain([to]) if d.flag() else None
    rest = stride, padding, [1] * dims, transposed, [0] * dims, groups
    return d.tensor(image), d.plain([*weight, *[filter] * dims]), bias, rest


@calls("convolution")
def convolution(d, op, _):
    image, weight, bias, rest = image_and_weight(d)
    return op.default, image, weight, bias, *rest


@calls("convolution_backward")
def convolution_backward(d, op, _):
    image, weight, bias, rest = image_and_weight(d)
    gradient = torch.empty_like(aten.convolution(image, weight, bias, *rest))
    wanted = d.random.choice(((True, True), (True, False), (False, True)))
    mask = [*wanted, bias is not None]
    sizes = None if bias is None else list(bias.shape)
    return op.default, gradient, image, weight, sizes, *rest, mask


def heads(d):
    batch, many, width = d.size(3), d.size(4), 8 * d.size(4)
    tokens, keys = d.size(40), d.size(40)
    return batch, many, width, tokens, keys


def grouped(d):
    """Query, key and value in half precision, some of them grouped."""
    d.dtype = torch.bfloat16
    batch, many, width, tokens, keys = heads(d)
    query = d.plain([batch, many * d.random.choice((1, 2)), tokens, width])
    return query, *(d.plain([batch, many, keys, width]) for _ in range(2))


@calls("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward")
def flash(d, op, name):
    query, key, value = grouped(d)
    causal = d.flag()
    if not name.endswith("backward"):
        return op.default, query, key, value, 0.0, causal
    seed = d.whole([])
    return (op.default, torch.empty_like(query), query, key, value, torch.empty_like(query),
            d.plain(query.shape[:3], torch.float32), None, None, query.shape[2], key.shape[2], 0.0,
            causal, seed, seed)


@calls("_scaled_dot_product_flash_attention_for_cpu")
def flash_of_a_cpu(d, op, _):
    batch, many, width, tokens, keys = heads(d)
    key = d.plain([batch, many, keys, width])
    return op.default, d.plain([batch, many, tokens, width]), key, key, 0.0, d.flag()


@calls("_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward")
def cudnn(d, op, name):
    query, key, value = grouped(d)
    causal = d.flag()
    if not name.endswith("backward"):
        return op.default, query, key, value, None, True, 0.0, causal
    seed = d.whole([])
    return (op.default, torch.empty_like(query), query, key, value, torch.empty_like(query),
            d.plain([*query.shape[:3], 1], torch.float32), seed, seed, None, None, None,
            query.shape[2], key.shape[2], 0.0, causal)


@calls("_scaled_dot_product_efficient_attention",
       "_scaled_dot_product_efficient_attention_backward")
def efficient(d, op, name):
    d.dtype = d.random.choice((torch.float32, torch.bfloat16))
    batch, many, width, tokens, keys = heads(d)
    query, key = (d.plain([batch, many, rows, width]) for rows in (tokens, keys))
    value = d.plain([batch, many, keys, 8 * d.size(4)])
    causal, seed = d.flag(), d.whole([])
    if not name.endswith("backward"):
        return op.default, query, key, value, None, True, 0.0, causal
    made = d.plain([batch, many, tokens, value.shape[-1]])
    return (op.default, made, query, key, value, None, made,
            d.plain([batch, many, tokens], torch.float32), seed, seed, 0.0, [True] * 3 + [False],
            causal)


@calls("embedding", "index_select", "gather")
def gather(d, op, name):
    shape = d.shape(2)
    places = d.whole([d.size(), d.size()] if name != "index_select" else [d.size()])
    if name == "embedding":
        return op.default, d.tensor(shape), places
    if name == "gather":
        places = d.whole([d.size(), shape[1]])
    return op.default, d.tensor(shape), 0, places


@calls("embedding_dense_backward")
def embedding_backward(d, op, _):
    places = d.whole([d.random.choice((40, 3072, 3073, 9000))])
    return op.default, d.plain([*places.shape, 8]), places, d.random.choice((50, 20_000)), -1, False


def indices_of(d, shape):
    """Of the first dimensions, and what is put there."""
    count = d.random.choice((1, 7, 2304, 2305, 5000))
    tensors = d.random.randint(1, len(shape))
    return [d.whole([count]) for _ in range(tensors)], d.tensor([count, *shape[tensors:]])


@calls("index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put")
def index_put(d, op, name):
    shape = [d.random.choice((3, 300, 70_000)), *d.shape(2)]
    indices, values = indices_of(d, shape)
    last = [d.flag()] if name == "_index_put_impl_" else []
    return op.default, d.plain(shape), indices, values, d.flag(), *last


@calls("scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "scatter", "scatter_")
def scatter(d, op, name):
    into = d.plain(d.shape(2))
    places = d.whole([d.size(), into.shape[1]])
    source = d.tensor([places.shape[0] + d.size(3), places.shape[1]])
    if "reduce" in name:
        way = d.random.choice(("sum", "mean", "amax"))
        return op.two, into, 0, places, source, way, {"include_self": d.flag()}
    if name.startswith("scatter_add"):
        return op.default, into, 0, places, source
    return (op.src, into, 0, places, source) if d.flag() else (op.value, into, 0, places, 1.0)


@calls("index_add", "index_add_", "index_copy", "index_copy_")
def index_add(d, op, _):
    into, rows = d.plain(d.shape(2)), d.size()
    return op.default, into, 0, d.whole([rows]), d.tensor([rows, into.shape[1]])


@calls("nll_loss_forward", "nll_loss2d_forward", "nll_loss_backward", "nll_loss2d_backward")
def nll_loss(d, op, name):
    rows = [d.size(), d.size(), d.size()] if "2d" in name else [d.size()]
    said, target = d.plain([rows[0], d.size(40), *rows[1:]]), d.whole(rows)
    gradient = [] if name.endswith("forward") else [d.plain([])]
    weight = [] if name.endswith("forward") else [d.plain([])]
    return op.default, *gradient, said, target, None, 1, -100, *weight


@calls("native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm",
       "_fused_rms_norm_backward")
def layer_norm(d, op, name):
    d.dtype = torch.float32
    rows, width = d.size(), d.size()
    x, weight, each = d.plain([rows, width]), d.plain([width]), d.plain([rows, 1])
    if name == "_fused_rms_norm":
        return op.default, x, [width], weight, 1e-5
    if name == "native_layer_norm":
        return op.default, x, [width], weight, weight, 1e-5
    wanted = [True, d.flag()]
    if name == "_fused_rms_norm_backward":
        return op.default, x, x, [width], each, weight, wanted
    return op.default, x, x, [width], each, each, weight, weight, [*wanted, wanted[1]]


@calls("native_group_norm", "native_group_norm_backward", "native_batch_norm",
       "native_batch_norm_backward")
def group_norm(d, op, name):
    batch, groups, places = d.size(), d.size(4), d.size()
    channels = groups * d.size(4)
    x, weight = d.plain([batch, channels, places]), d.plain([channels])
    if name == "native_group_norm":
        return op.default, x, weight, weight, batch, channels, places, groups, 1e-5
    each, wanted = d.plain([batch, groups]), d.flag()
    if name == "native_group_norm_backward":
        return (op.default, x, x, each, each, weight, batch, channels, places, groups,
                [True, wanted, wanted])
    if name == "native_batch_norm":
        return op.default, x, weight, weight, weight, weight, True, 0.1, 1e-5
    return (op.default, x, x, weight, weight, weight, weight, weight, True, 1e-5,
            [True, wanted, wanted])


@calls("max_pool2d_with_indices", "max_pool2d_with_indices_backward")
def max_pool(d, op, name):
    x = d.plain([d.size(), d.size(), 2 * d.size(), 2 * d.size()])
    if not name.endswith("backward"):
        return op.default, x, [2, 2], [2, 2]
    made, places = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    return op.default, made, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places


@calls("slice_backward", "select_backward", "constant_pad_nd")
def pad(d, op, name):
    shape = [d.size(12, 4), d.size()]
    if name == "constant_pad_nd":
        return op.default, d.tensor(shape), [1, d.size()]
    if name == "select_backward":
        return op.default, d.plain(shape[1:]), shape, 0, 1
    return op.default, d.plain([2, shape[1]]), shape, 0, 1, 3, 1


@calls("masked_fill")
def masked_fill(d, op, _):
    shape = d.shape()
    return op.Scalar, d.tensor(shape), d.plain(shape, torch.bool), 0.0


@calls("_softmax", "_softmax_backward_data")
def softmax(d, op, name):
    x = d.plain(d.shape())
    return (op.default, x, -1, False) if name == "_softmax" else (op.default, x, x, -1, d.dtype)


@calls("relu", "exp", "clone", "neg")
def of_each(d, op, _):
    return op.default, d.tensor(d.shape())


@calls("add", "mul")
def of_two(d, op, _):
    shape = d.shape()
    return op.Tensor, d.tensor(shape), d.tensor(shape if d.flag() else shape[-1:])


@calls("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like")
def alike(d, op, name):
    return (op.default, d.plain(d.shape()), *([1.0] if name == "full_like" else []))


@calls("new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided", "lift_fresh")
def new(d, op, name):
    shape = d.shape(2)
    rest = {"new_full": [shape, 1.0], "lift_fresh": [],
            "new_empty_strided": [shape, [shape[1], 1]]}.get(name, [shape])
    return op.default, d.plain(d.shape()), *rest


@calls("empty", "empty_strided")
def empty(d, op, name):
    shape, on = d.shape(2), {"dtype": d.dtype, "device": "meta"}
    if name == "empty":
        return op.memory_format, shape, on
    return op.default, shape, [shape[1], 1], on


@calls("copy_", "zero_", "fill_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_")
def overwrite(d, op, name):
    shape = d.shape()
    x = d.plain(shape)
    if name == "copy_":
        return op.default, x, d.tensor(shape)
    if name == "fill_":
        return op.Scalar, x, 1.0
    return (op.float if name == "bernoulli_" else op.default), x


def drawn(name, seed):
    """What `cost` takes: the overload, its arguments, its result, its tensors."""
    function, *args = CALLS[name](Draws(random.Random(f"{name} {seed}")))
    kwargs = args.pop() if isinstance(args[-1], dict) else {}
    inputs, written = tensors_of(function, args, kwargs)
    result = function(*args, **kwargs)
    given = {tensor.untyped_storage()._cdata for tensor in inputs}
    fresh = [tensor for tensor in tensors_in(result)
             if name == "lift_fresh" or tensor.untyped_storage()._cdata not in given]
    return function, args, kwargs, result, inputs, written, fresh


def costs_of(name):
    return [cost(*drawn(name, seed)) for seed in range(EACH)]


if __name__ == "__main__":
    RECORD.write_text("".join(json.dumps([name, costs_of(name)]) + "\n" for name in CALLS))
