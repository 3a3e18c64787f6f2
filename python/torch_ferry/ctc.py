"""CTC's loss on fake tensors, with the operators that PyTorch calls for plain tensors.

PyTorch converts the lengths to lists if they are plain tensors. If they are of a tensor subclass,
as fake tensors are, it does not, and saves the lengths as well. So `loss` repeats what
aten/src/ATen/native/LossCTC.cpp does for lists, operator by operator.

`takes_cudnn` has the rules of aten/src/ATen/native/cudnn/LossCTC.cpp in PyTorch 2.11 with cuDNN 9.
cuDNN requires 32-bit targets in one row: on the CPU if the lengths are lists, and on any device if
they are 32-bit tensors. It saves the gradient. Its workspace is not modelled, like that of
convolutions.
"""

import torch
from torch.nn import _reduction

from .known import know, known, value_of
from .values import FORMULAS


def loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
         zero_infinity=False):
    """Computes `torch.ctc_loss`. Raises `ValueAsked` if the lengths are not known."""
    if isinstance(reduction, str):
        reduction = _reduction.get_enum(reduction)
    device = log_probs.device
    if torch.is_autocast_enabled(device.type):
        log_probs = log_probs.float()
    with torch.autocast(device.type, enabled=False):
        return _loss(log_probs, targets, input_lengths, target_lengths, blank, reduction,
                     zero_infinity)


def _loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    is_batched = log_probs.dim() == 3
    by_cudnn = takes_cudnn(log_probs, targets, input_lengths, target_lengths, blank)
    if not by_cudnn:
        input_lengths, target_lengths = _list_of(input_lengths), _list_of(target_lengths)
    log_probs = log_probs if is_batched else log_probs.unsqueeze(1)
    lengths = input_lengths, target_lengths, blank
    if by_cudnn:
        losses = torch._cudnn_ctc_loss(log_probs, targets, *lengths, True, zero_infinity)[0]
    else:
        targets = targets.to(log_probs.device, torch.int64)
        losses = torch._ctc_loss(log_probs, targets, *lengths, zero_infinity)[0]
        if zero_infinity:
            zero = torch.zeros((), dtype=losses.dtype, device=losses.device)
            losses = torch.where(losses == float("inf"), zero, losses)
    if reduction == 1:
        return (losses / _floats(target_lengths, losses).clamp_min(1)).mean()
    if reduction == 2:
        return losses.sum()
    return losses if is_batched else losses.squeeze(0)


def _list_of(lengths):
    if not isinstance(lengths, torch.Tensor):
        return list(lengths)
    return known(lengths.to("cpu", torch.int64).contiguous(), "ctc_loss").flatten().tolist()


def _floats(lengths, like):
    if isinstance(lengths, torch.Tensor):
        return lengths.to(like.device, like.dtype)
    made = torch.empty(len(lengths), dtype=like.dtype, device="cpu")
    know(made, lengths)
    return made.to(like.device)


def takes_cudnn(log_probs, targets, input_lengths, target_lengths, blank):
    """Returns True if cuDNN computes this loss. The lengths are both lists or both tensors; for
    tensors of unknown values the answer is False."""
    if not (log_probs.device.type == "cuda" and torch.backends.cudnn.enabled and blank == 0
            and log_probs.dim() in (2, 3) and log_probs.dtype == torch.float32
            and targets.dim() == 1 and targets.dtype == torch.int32):
        return False
    if isinstance(input_lengths, torch.Tensor):
        if not targets.is_contiguous() or \
                {input_lengths.dtype, target_lengths.dtype} != {torch.int32}:
            return False
        input_lengths, target_lengths = map(value_of, (input_lengths, target_lengths))
        if input_lengths is None or target_lengths is None:
            return False
        input_lengths, target_lengths = input_lengths.tolist(), target_lengths.tolist()
    elif targets.device.type != "cpu" or any(length != log_probs.shape[0]
                                             for length in input_lengths):
        return False
    return all(target < 256 and target <= steps
               for target, steps in zip(target_lengths, input_lengths))


def _by_cudnn(log_probs, *_):
    return (log_probs.new_empty(log_probs.shape[1]),
            torch.empty_like(log_probs, memory_format=torch.contiguous_format))


def _backward(gradient, log_probs, *_):
    return torch.empty_like(log_probs, memory_format=torch.contiguous_format)


FORMULAS["_cudnn_ctc_loss"] = _by_cudnn
FORMULAS["_ctc_loss_backward"] = _backward
