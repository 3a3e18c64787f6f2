"""What an op costs: FLOPs, bytes read, bytes written, kernels, the shape of a matrix product.

The twin of formats/op_costs.h; tests/python/test_costs.py holds them together. FLOPs are those of
matmuls, convolutions and attention (products.py). Everything else is bound by bandwidth: bytes of
the distinct elements of its tensor arguments and results. Ops that look at a part of an argument
only, or at nothing but its shape, are listed by name below; a gather reads as much as it returns.
Where PyTorch 2.11 runs several kernels on a GPU, they are counted, with the bytes that go from one
to the next (aten/src/ATen/native/cuda).
"""

import torch

from .op_call import argument, distinct_bytes
from .products import ATTENTION, flops_and_products
from .puts import PUTS, put_traffic

SHAPE_ONLY = {
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like",
    "new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided", "lift_fresh",
}
WRITES_NOTHING = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
OVERWRITES = {"copy_", "zero_", "fill_", "normal_", "uniform_", "bernoulli_", "random_",
              "exponential_"}
GATHERS = {"embedding", "index_select", "gather"}  # from the first argument
LOSSES = {"nll_loss_forward", "nll_loss2d_forward"}  # read one element of each row
LOSS_GRADIENTS = {"nll_loss_backward", "nll_loss2d_backward"}  # their `self` gives the shape


def cost(func, args, kwargs, result, inputs, written, fresh):
    """What a line of a program says of one call. `inputs`, `fresh`: tensors; `written`: of
    `inputs`."""
    name = func._overloadpacket.__name__
    flops, products = flops_and_products(func, args, kwargs, result, inputs, fresh)
    if name in PUTS and len(inputs) > 1:
        kernels, reads, writes = put_traffic(
            name, inputs, fresh, lambda *asked: argument(func, args, kwargs, *asked))
    else:
        kernels, reads, writes = _traffic(name, inputs, written, fresh)
    said = {"flops": flops, "read": reads, "written": writes}
    if kernels != 1:
        said["kernels"] = kernels
    said.update(products)
    return {key: value for key, value in said.items() if value}


def _traffic(name, inputs, written, fresh):
    """(kernels, read, written)"""
    writes = sum(map(distinct_bytes, fresh)) + sum(distinct_bytes(inputs[i]) for i in written)
    reads = [distinct_bytes(t) for t in inputs]
    for number in written if name in OVERWRITES else (1,) if name in LOSS_GRADIENTS else ():
        reads[number] = 0
    if name in SHAPE_ONLY:
        reads = []
    elif name in GATHERS and reads and fresh:
        reads[0] = min(reads[0], distinct_bytes(fresh[0]))
    elif name in LOSSES and len(reads) > 1 and fresh:
        reads[0] = min(reads[0], inputs[1].numel() * inputs[0].element_size())
    more, reads_more, writes_more = _beside_one_kernel(name, inputs, fresh)
    return (1 + more, sum(reads) + reads_more,
            0 if name in WRITES_NOTHING else writes + writes_more)


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
    if name in LOSS_GRADIENTS:  # zeros, and then what is not 0
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
    if name in ("_scaled_dot_product_flash_attention_backward",
                "_scaled_dot_product_cudnn_attention_backward"):
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
