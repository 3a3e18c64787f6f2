"""What an op costs: FLOPs, bytes read, bytes written, kernels, the shape of a matrix product.

The twin of formats/op_costs.h. FLOPs are PyTorch's own formulas (torch.utils.flop_counter): of
matmuls, convolutions, attention; but of causal attention only those of the pairs that the mask
leaves, for its kernels skip the others. Everything else is bound by bandwidth: bytes of the
distinct elements of its tensor arguments and results. Ops that look at a part of an argument only,
or at nothing but its shape, are listed by name below; a gather reads as much as it returns. Where
PyTorch 2.11 runs several kernels on a GPU, they are counted, with the bytes that go from one to the
next (aten/src/ATen/native/cuda).
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
    """What a line of a program says of one call. `inputs`, `fresh`: tensors; `written`: of
    `inputs`."""
    packet = func._overloadpacket
    flops = 0
    name = packet.__name__
    if name == "_grouped_mm":
        flops = _grouped_product(*args[:2])
    elif packet in flop_registry:
        heads = _ungrouped(args) if name.startswith(ATTENTION) else args
        flops = int(flop_registry[packet](*heads, **kwargs, out_val=result))
    if name.startswith(ATTENTION) and _is_causal(func, args, kwargs):
        queries, keys = (t.shape[-2] for t in args[name.endswith("_backward"):][:2])
        flops = flops * _causal_pairs(queries, keys) // (queries * keys)
    writes = sum(map(distinct_bytes, fresh)) + sum(distinct_bytes(inputs[i]) for i in written)
    skipped = set(NOT_READ.get(name, ())) | (set(written) if name in OVERWRITES else set())
    reads = [distinct_bytes(t) for i, t in enumerate(inputs) if i not in skipped]
    if name in SHAPE_ONLY:
        reads = []
    elif name in GATHERS and reads and fresh:
        rows = sum(t.numel() for t in inputs[1:2]) * inputs[0].element_size()
        reads[0] = min(reads[0], rows if name == "nll_loss_forward" else distinct_bytes(fresh[0]))
    more, reads_more, writes_more = _beside_one_kernel(name, inputs, fresh)
    said = {"flops": flops, "read": sum(reads) + reads_more,
            "written": 0 if name in WRITES_NOTHING else writes + writes_more}
    if more:
        said["kernels"] = 1 + more
    said.update(_matrix_product(name, inputs, fresh))
    return {key: value for key, value in said.items() if value}


def _beside_one_kernel(name, inputs, fresh):
    """(kernels, read, written) beside one that reads the arguments and writes the results."""
    def read(*numbers):
        return sum(distinct_bytes(inputs[i]) for i in numbers if i < len(inputs))
    made = distinct_bytes(fresh[0]) if fresh else 0
    if name in ("masked_fill", "baddbmm") or name == "addmm" and inputs[0].dim() != 1:
        return 1, made, made  # a copy, and then in place; a vector is added by cuBLASLt instead
    if name == "_softmax_backward_data":  # the gradient times the result, then a softmax's
        return 1, read(0, 1), read(0)
    if name == "convolution" and len(inputs) > 2:  # adds the bias
        return 1, made, made
    if name == "convolution_backward" and len(fresh) > 1:
        return len(fresh) - 1, (len(fresh) - 1) * read(0), 0
    if name in ("nll_loss_backward", "nll_loss2d_backward"):  # zeros, and then what is not 0
        return 1, 0, 0
    if name == "max_pool2d_with_indices_backward":
        return 1, 0, made
    if name in ("slice_backward", "select_backward", "constant_pad_nd"):
        return 1, 0, read(0)
    if name == "embedding_dense_backward":
        return _beside_embedding(*inputs[:2], fresh[0])
    if name.startswith(ATTENTION):
        return _beside_attention(name, inputs, read)
    return _beside_norm(name, fresh, read)


def _beside_norm(name, fresh, read):
    if name in ("native_layer_norm_backward", "_fused_rms_norm_backward") and len(fresh) > 1:
        return 1, read(0, 1), 0  # the input's gradient; the weight's, bias's
    if name == "native_group_norm" or name == "native_batch_norm" and len(fresh) > 1:
        return 2, read(0), 0  # sums over groups or channels, then what they make of them
    if name == "native_group_norm_backward":
        return 4 if len(fresh) > 1 else 3, read(0, 1), 0
    if name == "native_batch_norm_backward":  # in one kernel
        return 0, read(0, 1), 0
    return 0, 0, 0


def _beside_attention(name, inputs, read):
    """Of a backward: sums of products; the queries' gradients, which are added up in fp32; and of
    grouped keys and values a gradient for each head of the queries, to be summed."""
    if not name.endswith("_backward") or len(inputs) < 3:
        return 0, 0, 0
    query, key = inputs[1:3]
    if name == "_scaled_dot_product_flash_attention_backward":
        kernels, reads, writes = 2, read(0) + 2 * read(1), 2 * read(1)
        if query.shape[1] != key.shape[1]:
            each = read(2) // key.shape[1] * query.shape[1]
            return kernels + 2, reads + 2 * each, writes + 2 * each
        return kernels, reads, writes
    if name == "_scaled_dot_product_efficient_attention_backward":
        gradients = read(1) // query.element_size() * 4  # from zeros
        if query.dtype != torch.float32:
            return 1, gradients, gradients
        return 4, 2 * read(0) + gradients, read(0) + gradients  # operators multiply and sum first
    return 0, 0, 0


def _beside_embedding(gradient, indices, made):
    """Few rows are added to zeros by one kernel. More are sorted by their index, the rows of each
    are cut into parts of ten, these are summed in fp32, and then each other. Each row is taken for
    one of its own where there are as many: how often an index comes is not known."""
    count, columns = indices.numel(), gradient.shape[-1]
    touched = min(count, made.numel() // max(columns, 1))
    added = touched * columns * made.element_size()
    if count <= 3072:
        return 1, added, added
    parts = min(count, count // 10 + touched) * columns * 4
    between = 8 * count * 16 + parts  # 8 passes, of a key and a place
    return 20, between, between + added


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


def _is_causal(func, args, kwargs):
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == "is_causal":
            default = argument.default_value
            return args[position] if position < len(args) else kwargs.get("is_causal", default)
    return False


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
