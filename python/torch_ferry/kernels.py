"""Chooses the attention kernel that a GPU would choose, for fake tensors.

Fake tensors say that they are on a GPU, so most operators of PyTorch choose as on a GPU. One asks
the device itself: scaled_dot_product_attention chooses its kernel by the card. This module replaces
that choice. It has the rules of PyTorch's sdp_utils.cpp (aten/src/ATen/native/transformers/cuda),
in PyTorch's order: flash, memory-efficient, math, cuDNN. Below compute capability 8.0 (T4, V100)
there is no flash attention and no cuDNN, and memory-efficient attention has no bfloat16. On a card
of 9.0 or 10.0 (H100, H200, B200) cuDNN comes first, as seen on an H100 with PyTorch 2.11. Grouped
queries stay grouped, because flash attention and cuDNN take them so.
`torch.nn.attention.sdpa_kernel` has its usual effect.

The recurrent layers of cuDNN are rejected, because only cuDNN knows the size of what they save.
With cuDNN disabled PyTorch's own kernels are captured, one for each step. The GRU kernel has no
formula for fake tensors in PyTorch; it is here (aten/src/ATen/native/cuda/RNN.cu).
"""

import contextlib
import os
from unittest import mock

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from . import fake_cuda
from .asking import asking_line
from .program import CaptureError
from .values import FORMULAS

aten = torch.ops.aten
RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)
PREFER_CUDNN = ((9, 0), (10, 0))  # cards
HALVES = (torch.bfloat16, torch.float16)


_pytorchs = F.scaled_dot_product_attention


_in_math = False


def adds_mask_in_place():
    """Returns True while PyTorch's attention runs that is made of operators. It adds the mask in
    place, but not for tensor subclasses such as fake tensors (areAnyTensorSubclassLike)."""
    return _in_math


@contextlib.contextmanager
def _math():
    global _in_math
    before, _in_math = _in_math, True
    try:
        yield
    finally:
        _in_math = before


class CpuKernels(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is _pytorchs:
            return _by_cpu(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _by_cpu(*args, **kwargs):
    with _math():
        return _pytorchs(*args, **kwargs)


@contextlib.contextmanager
def of_cpu():
    """A context for captures of a CPU's kernels: PyTorch chooses the attention kernel itself."""
    with CpuKernels(), mock.patch.object(F, "scaled_dot_product_attention", _by_cpu):
        yield


@contextlib.contextmanager
def picked():
    """A context in which `attention` chooses the kernel. A mode does not see calls from PyTorch's
    own functions, so the function itself is replaced as well."""
    with GpuKernels(), mock.patch.object(F, "scaled_dot_product_attention", _autocast):
        yield


class GpuKernels(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is _pytorchs:
            return _autocast(*args, **(kwargs or {}))
        if func in RECURRENT and torch.backends.cudnn.enabled:
            raise CaptureError(
                f"{asking_line()} runs {func.__name__} by cuDNN, and only cuDNN knows how much "
                "that saves for backward. Set torch.backends.cudnn.enabled = False to capture "
                "PyTorch's own kernels instead")
        return func(*args, **(kwargs or {}))


def _autocast(query, key, value, attn_mask=None, *args, **kwargs):
    """Casts the arguments as autocast does, whose list has attention, and then chooses a kernel."""
    if not torch.is_autocast_enabled("cuda"):
        return attention(query, key, value, attn_mask, *args, **kwargs)
    dtype = torch.get_autocast_dtype("cuda")
    query, key, value, attn_mask = (
        t.to(dtype) if t is not None and t.is_floating_point() and t.dtype != torch.float64 else t
        for t in (query, key, value, attn_mask))
    with torch.autocast("cuda", enabled=False):
        return attention(query, key, value, attn_mask, *args, **kwargs)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
              enable_gqa=False):
    given = (query, key, value, attn_mask, is_causal, enable_gqa)
    by_cudnn = (torch.backends.cuda.cudnn_sdp_enabled()
                and takes_cudnn(query, key, value, dropout_p, enable_gqa))
    if by_cudnn and prefers_cudnn():
        return _cudnn(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if torch.backends.cuda.flash_sdp_enabled() and takes_flash(*given):
        return _flash(query, key, value, dropout_p, is_causal, scale)
    if torch.backends.cuda.mem_efficient_sdp_enabled() and takes_efficient(*given):
        return _efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if not torch.backends.cuda.math_sdp_enabled():
        if by_cudnn:
            return _cudnn(query, key, value, attn_mask, dropout_p, is_causal, scale)
        raise RuntimeError("no enabled attention kernel can compute these tensors")
    if attn_mask is not None:
        attn_mask = _as_bias(attn_mask, query.dtype)
    with _math():
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale,
            enable_gqa=enable_gqa)[0]


def is_old():
    """Returns True for a card below compute capability 8.0. A card that is not known is none."""
    card = fake_cuda.card()
    return card is not None and card < (8, 0)


def prefers_cudnn():
    return (fake_cuda.card() in PREFER_CUDNN
            and os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") != "1")


def takes_cudnn(query, key, value, dropout_p, grouped):
    wide, wide_value = query.shape[-1], value.shape[-1]
    narrow = wide <= 128 and wide_value <= 128 or (wide, wide_value) == (192, 128)
    free = not (torch.are_deterministic_algorithms_enabled()
                and not torch.is_deterministic_algorithms_warn_only_enabled())
    return (free and not is_old() and query.dtype in HALVES and _dense(query, key, value)
            and wide == key.shape[-1] and narrow and wide % 8 == 0 and wide_value % 8 == 0
            and key.shape[-2] != 1 and not (dropout_p and query.shape[-2] == 1)
            and _heads_fit(query, key, value, grouped))


def takes_flash(query, key, value, mask, is_causal, grouped):
    head = query.shape[-1]
    return (mask is None and not is_old() and query.dtype in HALVES
            and _dense(query, key, value)
            and head == key.shape[-1] == value.shape[-1] and head <= 256
            and not (is_causal and query.shape[-2] != key.shape[-2])
            and _heads_fit(query, key, value, grouped))


def takes_efficient(query, key, value, mask, is_causal, grouped):
    aligned = {torch.float32: 4, torch.bfloat16: None if is_old() else 8,
               torch.float16: 8}.get(query.dtype)
    return (aligned is not None and _dense(query, key, value)
            and not grouped and _heads_fit(query, key, value, False)
            and query.shape[-1] == key.shape[-1]
            and query.shape[-1] % aligned == 0 and value.shape[-1] % aligned == 0
            and not (is_causal and mask is not None))


def _dense(*tensors):
    """Returns True if all tensors are [batch, heads, tokens, width], of one batch size and dtype,
    with at least one token and with rows without gaps."""
    return (all(t.dim() == 4 and t.shape[0] == tensors[0].shape[0] and t.shape[-2] > 0
                and t.dtype == tensors[0].dtype for t in tensors)
            and all(t.stride(-1) == 1 or t.shape[-1] == 1 for t in tensors))


def _heads_fit(query, key, value, grouped):
    if query.shape[1] == key.shape[1] == value.shape[1]:
        return True
    return grouped and key.shape[1] == value.shape[1] and query.shape[1] % key.shape[1] == 0


def _cudnn(query, key, value, mask, dropout_p, is_causal, scale):
    if mask is not None:
        mask = _as_bias(mask, query.dtype)
    return aten._scaled_dot_product_cudnn_attention(
        query, key, value, mask, _needs_grad(query, key, value), dropout_p, is_causal, False,
        scale=scale)[0]


def _flash(query, key, value, dropout_p, is_causal, scale):
    head = query.shape[-1]
    if head % 8:  # the kernel needs rows of a multiple of 16 bytes
        scale = head ** -0.5 if scale is None else scale
        query, key, value = (F.pad(t, (0, 8 - head % 8)) for t in (query, key, value))
    made = aten._scaled_dot_product_flash_attention(
        query, key, value, dropout_p, is_causal, scale=scale)[0]
    return made[..., :head] if head % 8 else made


def _efficient(query, key, value, mask, dropout_p, is_causal, scale):
    if mask is not None:
        mask = _as_bias(mask, query.dtype)
        columns = mask.shape[-1]
        *rows, last = mask.stride()
        if last != 1 or any(stride % 8 for stride in rows):  # the kernel also needs aligned rows
            mask = F.pad(mask, (0, 8 - columns % 8))[..., :columns]
        mask = mask.expand(query.shape[:2] + (query.shape[2], key.shape[2]))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, _needs_grad(query, key, value), dropout_p, is_causal,
        scale=scale)[0]


def _needs_grad(*tensors):
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _as_bias(mask, dtype):
    """Returns the mask as numbers to add to the scores."""
    if mask.dtype != torch.bool:
        return mask
    return torch.where(mask, 0.0, torch.scalar_tensor(float("-inf"), dtype=dtype,
                                                      device=mask.device))


def _gru_cell(input_gates, hidden_gates, hidden, *_):
    return hidden.new_empty(hidden.shape), hidden.new_empty(hidden.shape[0], hidden.shape[1] * 5)


def _gru_cell_backward(gradient, workspace, has_bias):
    rows, width = workspace.shape[0], workspace.shape[1] // 5 * 3
    gates = [workspace.new_empty(rows, width) for _ in range(2)]
    biases = [workspace.new_empty(width) if has_bias else None for _ in range(2)]
    return *gates, torch.empty_like(gradient), *biases


FORMULAS["_thnn_fused_gru_cell"] = _gru_cell
FORMULAS["_thnn_fused_gru_cell_backward"] = _gru_cell_backward
