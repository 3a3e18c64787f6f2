"""Whether two tensors are the same to the bit: a NaN is itself, and -0 is not 0."""

import torch


def same(one, other):
    if one is None or other is None:
        return one is other
    if (one.layout, one.dtype, one.shape) != (other.layout, other.dtype, other.shape):
        return False
    return torch.equal(_bytes(one), _bytes(other))


def _bytes(tensor):
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    plain = dense.detach().resolve_conj().resolve_neg()
    # A copy has a stride of one even where it has one element.
    return plain.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
