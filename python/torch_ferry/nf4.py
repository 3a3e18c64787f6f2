"""Linear layers whose frozen weights have four bits, as bitsandbytes lays them out (QLoRA).

Two weights share a byte. Each 64 weights have a scale of one byte, and each 256 scales have a
scale in float32 ("double quantization", as the QLoRA paper has it). A product makes the whole
weight in bfloat16, and the scales in float32, and frees both after it, in forward and in backward:
so does bitsandbytes for more than a few hundred rows. Nothing of the weight is saved.

Not here: the values of the weights, a fused product for few rows, and the memory that loading the
model takes.
"""

import torch
from torch import nn

_BLOCK, _NESTED = 64, 256


class Linear4bit(nn.Module):
    """Takes the place of an nn.Linear."""

    def __init__(self, linear, compute_dtype=torch.bfloat16):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.compute_dtype, self.bias = compute_dtype, linear.bias
        count = linear.weight.numel()
        blocks = -(-count // _BLOCK)
        self.weight = nn.Parameter(torch.zeros(-(-count // 2), 1, dtype=torch.uint8),
                                   requires_grad=False)
        for name, size, dtype in (("scales", blocks, torch.uint8),
                                  ("scales_of_scales", -(-blocks // _NESTED), torch.float32),
                                  ("code", 16, torch.float32), ("code_of_scales", 256,
                                                                torch.float32),
                                  ("offset", 1, torch.float32)):
            self.register_buffer(name, torch.zeros(size, dtype=dtype))

    def forward(self, x):
        made = _Product.apply(x.to(self.compute_dtype), self.weight, self.scales, self.offset,
                              (self.out_features, self.in_features))
        if self.bias is not None:
            made = made + self.bias.to(self.compute_dtype)
        return made.to(x.dtype)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, packed, scales, offset, shape):
        ctx.save_for_backward(packed, scales, offset)
        ctx.shape = shape
        return nn.functional.linear(x, _weight(packed, scales, offset, shape, x.dtype))

    @staticmethod
    def backward(ctx, gradient):
        weight = _weight(*ctx.saved_tensors, ctx.shape, gradient.dtype)
        return torch.matmul(gradient, weight), None, None, None, None


def _weight(packed, scales, offset, shape, dtype):
    """Returns a tensor of the weight's shape, by operators that need the memory of bitsandbytes'
    kernels."""
    blocks = scales.to(torch.float32)
    blocks += offset
    both = packed.expand(-1, 2).to(dtype, memory_format=torch.contiguous_format)
    weight = both.view(-1)[:shape[0] * shape[1]].view(shape)
    weight *= blocks[0]
    return weight


def quantize(model):
    """Replaces all linear layers but the output head, and freezes the model."""
    head = model.get_output_embeddings()
    model.requires_grad_(False)
    for name, layer in [*model.named_modules()]:
        if isinstance(layer, nn.Linear) and layer is not head:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, Linear4bit(layer))


def prepare(model):
    """Casts what has no four bits to float32, as PEFT's prepare_model_for_kbit_training does."""
    for parameter in model.parameters():
        if parameter.dtype in (torch.float16, torch.bfloat16):
            parameter.data = parameter.data.to(torch.float32)
