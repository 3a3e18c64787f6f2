"""The models of `ferry train` in Python: the same names, the same ops in the same order.

real/train/gpt.cpp and real/train/llama.cpp are the originals. The head is a Linear named lm_head,
as in the models that people fine-tune, so that what looks for it (TRL) finds it; where it is tied
its weight is the embedding's.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def tied_head(weight):
    head = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    head.weight = weight
    return head


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)

    def attend(self, x):
        batch, time, width = x.shape
        queries, keys, values = (
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.queries_keys_values(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.attention_out(mixed.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x):
        x = x + self.attend(self.attention_norm(x))
        return x + self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(x))))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        shared = width // heads * kv_heads
        self.heads, self.kv_heads = heads, kv_heads
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.queries = nn.Parameter(torch.empty(width, width))
        self.keys = nn.Parameter(torch.empty(shared, width))
        self.values = nn.Parameter(torch.empty(shared, width))
        self.attention_out = nn.Parameter(torch.empty(width, width))
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.gate = nn.Parameter(torch.empty(hidden, width))
        self.up = nn.Parameter(torch.empty(hidden, width))
        self.down = nn.Parameter(torch.empty(width, hidden))

    @staticmethod
    def rotated(x, rotary):
        cosines, sines = rotary[0][:x.size(2)], rotary[1][:x.size(2)]
        first, second = x.chunk(2, -1)
        return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)

    def attend(self, x, rotary):
        batch, time, _ = x.shape

        def by_head(weight, heads):
            return F.linear(x, weight).view(batch, time, heads, -1).transpose(1, 2)

        queries = self.rotated(by_head(self.queries, self.heads), rotary)
        keys = self.rotated(by_head(self.keys, self.kv_heads), rotary)
        values = by_head(self.values, self.kv_heads)
        grouped = self.heads != self.kv_heads
        if grouped and x.is_cuda and x.dtype == torch.float32:
            keys, values = (
                part.unsqueeze(2).expand(-1, -1, self.heads // self.kv_heads, -1, -1).flatten(1, 2)
                for part in (keys, values))
            grouped = False
        mixed = F.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, enable_gqa=grouped)
        return F.linear(mixed.transpose(1, 2).reshape(batch, time, -1), self.attention_out)

    def forward(self, x, rotary):
        x = x + self.attend(rms_norm(x, self.attention_norm), rotary)
        inner = rms_norm(x, self.mlp_norm)
        return x + F.linear(F.silu(F.linear(inner, self.gate)) * F.linear(inner, self.up),
                            self.down)


def rms_norm(x, weight):
    return F.rms_norm(x, (x.size(-1),), weight, 1e-5)


class Model(nn.Module):
    """`checkpointed`: every block runs under torch.utils.checkpoint, without reentering."""

    def __init__(self, layers, block):
        super().__init__()
        self.checkpointed = False
        self.layers = layers
        for layer in range(layers):
            self.add_module(f"block{layer}", block())

    def run(self, x, *shared):
        for layer in range(self.layers):
            block = getattr(self, f"block{layer}")
            if self.checkpointed:
                x = checkpoint(block, x, *shared, use_reentrant=False)
            else:
                x = block(x, *shared)
        return x


class Gpt(Model):
    def __init__(self, shape):
        super().__init__(shape["layers"], lambda: GptBlock(shape["width"], shape["heads"]))
        self.tokens = nn.Embedding(shape["vocabulary"], shape["width"])
        self.positions = nn.Embedding(shape["context"], shape["width"])
        self.norm = nn.LayerNorm(shape["width"])
        self.tie()

    def tie(self):
        self.lm_head = tied_head(self.tokens.weight)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.size(1)].unsqueeze(0)
        return self.lm_head(self.norm(self.run(x)))


class Llama(Model):
    def __init__(self, shape):
        super().__init__(shape["layers"], lambda: LlamaBlock(
            shape["width"], shape["heads"], shape["kv_heads"], shape["hidden"]))
        self.tokens = nn.Parameter(torch.empty(shape["vocabulary"], shape["width"]))
        self.norm = nn.Parameter(torch.ones(shape["width"]))
        if shape["untied"]:
            self.head = nn.Parameter(torch.empty(shape["vocabulary"], shape["width"]))
        self.register_buffer(
            "rotary", torch.empty(2, shape["context"], shape["width"] // shape["heads"] // 2))
        self.tie()

    def tie(self):
        self.lm_head = tied_head(self.head if hasattr(self, "head") else self.tokens)

    def forward(self, tokens):
        x = self.run(F.embedding(tokens, self.tokens), self.rotary)
        return self.lm_head(rms_norm(x, self.norm))


def make_model(shape, weights):
    """The model with these tensors as its weights, which it does not copy."""
    with torch.device("meta"):
        model = {"gpt": Gpt, "llama": Llama}[shape["model"]](shape)
    expected = {name for name in model.state_dict() if not name.startswith("lm_head.")}
    if set(weights) != expected:
        raise ValueError(f"the weights are not this model's: {sorted(set(weights) ^ expected)}")
    model.load_state_dict(weights, strict=False, assign=True)
    model.tie()
    return model.requires_grad_(True)


def loss_of(model, inputs, targets):
    """Of float32, whatever the model's dtype."""
    return F.cross_entropy(model(inputs).flatten(0, 1).float(), targets.flatten())
