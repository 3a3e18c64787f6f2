"""Picks the kernels that a GPU would have picked.

Fake tensors live on the CPU (a fake CUDA device wants a CUDA context in backward), so PyTorch picks
CPU kernels where a composite function branches on the device. Two such branches change what is
saved, and are put right here:

* attention: bf16 and f16 without a mask take the flash kernel (K and V heads repeated where there
  are fewer of them), the rest the memory-efficient one. The CPU would take the math path with its
  T×T matrices.
* dropout: one byte of mask per element (native_dropout) in place of noise in the input's dtype.
"""

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten


class GpuKernels(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return attention(*args, **kwargs)
        if func is F.dropout:
            return dropout(*args, **kwargs)
        return func(*args, **kwargs)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
              enable_gqa=False):
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        groups = query.shape[-3] // key.shape[-3]
        key = key.repeat_interleave(groups, -3)
        value = value.repeat_interleave(groups, -3)
    if query.dim() != 4:  # the fused kernels want batch and heads
        shape = query.shape[:-1] + value.shape[-1:]
        four = [t.reshape((-1, 1) + t.shape[-2:]) for t in (query, key, value)]
        if attn_mask is not None:
            attn_mask = attn_mask.expand(query.shape[:-1] + key.shape[-2:-1])
            attn_mask = attn_mask.reshape((-1, 1) + attn_mask.shape[-2:])
        return attention(*four, attn_mask, dropout_p, is_causal, scale).reshape(shape)
    if attn_mask is None and query.dtype in (torch.bfloat16, torch.float16):
        return aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, scale=scale)[0]
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            zeros = torch.zeros_like(attn_mask, dtype=query.dtype)
            attn_mask = zeros.masked_fill(attn_mask.logical_not(), float("-inf"))
        attn_mask = attn_mask.expand(query.shape[:-1] + key.shape[-2:-1])
    needs_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, needs_grad, dropout_p, is_causal, scale=scale)[0]


def dropout(input, p=0.5, training=True, inplace=False):
    if inplace or not training or not 0.0 < p < 1.0 or input.numel() == 0:
        return F.dropout(input, p, training, inplace)
    return torch.native_dropout(input, p, True)[0]
