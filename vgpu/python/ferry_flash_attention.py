"""Stands in for flash-attn 2's compiled module `flash_attn_2_cuda` under `ferry run`.

The Python package flash_attn (2.8), which `FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE pip install` gives
on a machine without nvcc, imports this module. Its functions allocate what the compiled ones
allocate, and call an operator of their name that writes it. The operator has a stand-in
(ferry_extensions.py), which computes in single precision, one sequence at a time. So values are not
a GPU's to the bit. formats/op_products.h has the FLOPs.

Not supported, and refused by name: dropout with values, paged and padded keys (block_table,
leftpad_k, seqused_k), fwd_kvcache. The head of a compiled function says what its arguments are:
csrc/flash_attn/flash_api.cpp of flash-attn.
"""

import importlib.abc
import importlib.machinery
import types

import torch

NAME = "flash_attn_2_cuda"
RULE = "Tensor? alibi_slopes, float scale, bool is_causal, int left, int right, float softcap"
PARTS = {"": "", "varlen_": "Tensor starts_q, Tensor starts_k, "}
SCHEMAS = {
    "fwd": "(Tensor q, Tensor k, Tensor v, {}Tensor(a!) out, Tensor(b!) lse, " + RULE + ") -> ()",
    "bwd": "(Tensor dout, Tensor q, Tensor k, Tensor v, {}Tensor out, Tensor lse, Tensor(a!) dq, "
           "Tensor(b!) dk, Tensor(c!) dv, Tensor(d!) delta, " + RULE + ") -> ()"}


def rounded(number, to):
    return -(-number // to) * to


def seen(queries, keys, left, right):
    """Which keys a query sees. The last query stands at the last key."""
    query = torch.arange(keys - queries, keys)[:, None]
    key = torch.arange(keys)
    mask = torch.ones(queries, keys, dtype=torch.bool)
    if right >= 0:
        mask &= key <= query + right
    if left >= 0:
        mask &= key >= query - left
    return mask, (query - key).abs()


class Sequence:
    """The scores of one sequence. q: (queries, heads, width), k and v: (keys, heads of keys, …)."""

    def __init__(self, q, k, v, slopes, scale, is_causal, left, right, softcap):
        self.groups = q.shape[1] // k.shape[1]
        self.q, self.k, self.v = q.float(), self._each(k), self._each(v)
        self.scale = scale
        scores = torch.einsum("qhd,khd->hqk", self.q, self.k) * scale
        self.slope = 1.0  # of the cap
        if softcap > 0:
            tanh = torch.tanh(scores / softcap)
            scores, self.slope = softcap * tanh, 1 - tanh * tanh
        mask, distance = seen(len(q), len(k), left, 0 if is_causal else right)
        if slopes is not None:
            scores = scores - slopes.float()[:, None, None] * distance
        self.scores = scores.masked_fill(~mask, -torch.inf)

    def _each(self, of_keys):
        return of_keys.float().repeat_interleave(self.groups, 1)

    def _sum(self, of_queries):
        return of_queries.unflatten(1, (-1, self.groups)).sum(2)

    def forward(self, out, lse):
        sums = torch.logsumexp(self.scores, -1)
        sums[sums == -torch.inf] = torch.inf  # a query that sees no key gives 0
        weights = torch.exp(self.scores - sums[..., None])
        out.copy_(torch.einsum("hqk,khd->qhd", weights, self.v))
        lse.copy_(sums)

    def backward(self, dout, out, lse, dq, dk, dv, delta):
        dout = dout.float()
        weights = torch.exp(self.scores - lse[..., None])
        sums = (dout * out.float()).sum(-1).t()
        of_scores = weights * (torch.einsum("qhd,khd->hqk", dout, self.v) - sums[..., None])
        of_scores = of_scores * self.slope * self.scale
        dq.copy_(torch.einsum("hqk,khd->qhd", of_scores, self.k))
        dk.copy_(self._sum(torch.einsum("hqk,qhd->khd", of_scores, self.q)))
        dv.copy_(self._sum(torch.einsum("hqk,qhd->khd", weights, dout)))
        delta.copy_(sums)


def pieces(starts):
    bounds = starts.tolist()
    return [slice(*each) for each in zip(bounds, bounds[1:])]


def slopes_of(alibi, i):
    return alibi[i] if alibi is not None and alibi.dim() == 2 else alibi


def fwd(q, k, v, out, lse, alibi, *rule):
    for i in range(len(q)):
        Sequence(q[i], k[i], v[i], slopes_of(alibi, i), *rule).forward(out[i], lse[i])


def varlen_fwd(q, k, v, starts_q, starts_k, out, lse, alibi, *rule):
    for i, (a, b) in enumerate(zip(pieces(starts_q), pieces(starts_k))):
        Sequence(q[a], k[b], v[b], slopes_of(alibi, i), *rule).forward(out[a], lse[:, a])


def bwd(dout, q, k, v, out, lse, dq, dk, dv, delta, alibi, *rule):
    for i in range(len(q)):
        Sequence(q[i], k[i], v[i], slopes_of(alibi, i), *rule).backward(
            dout[i], out[i], lse[i], dq[i], dk[i], dv[i], delta[i, :, :q.shape[1]])


def varlen_bwd(dout, q, k, v, starts_q, starts_k, out, lse, dq, dk, dv, delta, alibi, *rule):
    for i, (a, b) in enumerate(zip(pieces(starts_q), pieces(starts_k))):
        Sequence(q[a], k[b], v[b], slopes_of(alibi, i), *rule).backward(
            dout[a], out[a], lse[:, a], dq[a], dk[b], dv[b], delta[:, a])


class FlashAttention(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module, in front of a compiled one. `has_values` is false under --no-values."""

    def __init__(self, stand_in, note_refusal, has_values):
        self._stand_in, self._note_refusal = stand_in, note_refusal
        self._has_values = has_values

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == NAME else None

    def create_module(self, spec):
        return types.ModuleType(NAME, "Ferry's stand-in for flash-attn's compiled module.")

    def exec_module(self, module):
        self._library = torch.library.Library(NAME, "FRAGMENT")
        for function in (fwd, varlen_fwd, bwd, varlen_bwd):
            name = function.__name__
            part = name[:-3]
            self._library.define(name + SCHEMAS[name[-3:]].format(PARTS[part]))
            self._stand_in(f"{NAME}::{name}", function)
        module.fwd, module.varlen_fwd = self._fwd, self._varlen_fwd
        module.bwd, module.varlen_bwd = self._bwd, self._varlen_bwd
        module.fwd_kvcache = lambda *_, **__: self._refuse("fwd_kvcache", "")

    def _refuse(self, name, what):
        self._note_refusal(f"{NAME}.{name}")
        raise NotImplementedError(f"{NAME}.{name}{what}: the virtual GPU has no stand-in for it")

    def _check(self, name, q, k, dropout, others=()):
        if dropout > 0 and self._has_values:
            self._refuse(name, " with dropout")
        if any(each is not None for each in others):
            self._refuse(name, " with block_table, leftpad_k or seqused_k")
        if torch.cuda.get_device_capability(q.device)[0] < 8:
            raise RuntimeError("FlashAttention needs a card of compute capability 8.0 or more")
        if q.dtype not in (torch.float16, torch.bfloat16) or k.dtype != q.dtype:
            raise RuntimeError("FlashAttention takes float16 and bfloat16 alone")
        if q.shape[-1] > 256 or q.shape[-1] % 8 or q.shape[-2] % k.shape[-2]:
            raise RuntimeError("FlashAttention takes heads of at most 256 numbers, a multiple of 8, "
                               "and a multiple of the keys' heads")

    def _made(self, q, out, lse, returns, sizes):
        out = torch.empty_like(q) if out is None else out
        weights = (len(sizes[0]), q.shape[-2], *sizes[1]) if returns else (0,)
        return (out, q.new_empty(lse, dtype=torch.float32), q.new_empty(weights),
                torch.empty(2, dtype=torch.int64, device=q.device))

    def _fwd(self, q, k, v, out, alibi, dropout, scale, causal, left, right, softcap, returns, _):
        self._check("fwd", q, k, dropout)
        batch, queries, heads, _ = q.shape
        made = self._made(q, out, (batch, heads, queries), returns,
                          (q, (rounded(queries, 128), rounded(k.shape[1], 128))))
        torch.ops.flash_attn_2_cuda.fwd(q, k, v, *made[:2], alibi, scale, causal, left, right,
                                        softcap)
        return made

    def _varlen_fwd(self, q, k, v, out, starts_q, starts_k, seqused, leftpad, table, alibi, most_q,
                    most_k, dropout, scale, zero, causal, left, right, softcap, returns, _):
        self._check("varlen_fwd", q, k, dropout, (seqused, leftpad, table))
        made = self._made(q, out, (q.shape[1], len(q)), returns,
                          (starts_q[1:], (rounded(most_q, 128), rounded(most_k, 128))))
        if zero:
            made[0].zero_()
            made[1].fill_(-torch.inf)
        torch.ops.flash_attn_2_cuda.varlen_fwd(q, k, v, starts_q, starts_k, *made[:2], alibi, scale,
                                               causal, left, right, softcap)
        return made

    def _gradients(self, q, k, v, gradients, deterministic, rows, batch):
        """The gradients, and what the kernels add up in: the caller drops it after the call."""
        made = [torch.empty_like(of) if one is None else one
                for one, of in zip(gradients, (q, k, v))]
        heads, width = q.shape[-2:]
        splits = ()
        if deterministic:
            count = torch.cuda.get_device_properties(q.device).multi_processor_count
            splits = (rounded(count, batch * heads) // (batch * heads),)
        sums = [q.new_empty((*splits, *rows, heads, rounded(width, 32 if width <= 128 else 64)),
                            dtype=torch.float32)]
        if deterministic:
            sums[0].zero_()
        if k.shape[-2] != heads:
            sums += [q.new_empty((*k.shape[:-2], heads, width)) for _ in range(2)]
        return made, sums

    def _bwd(self, dout, q, k, v, out, lse, dq, dk, dv, alibi, dropout, scale, causal, left, right,
             softcap, deterministic, *_):
        self._check("bwd", q, k, dropout)
        batch, queries, heads, _ = q.shape
        rows = rounded(queries, 128)
        delta = q.new_empty((batch, heads, rows), dtype=torch.float32)
        made, sums = self._gradients(q, k, v, (dq, dk, dv), deterministic, (batch, rows), batch)
        torch.ops.flash_attn_2_cuda.bwd(dout, q, k, v, out, lse, *made, delta, alibi, scale, causal,
                                        left, right, softcap)
        del sums
        return (*made, delta)

    def _varlen_bwd(self, dout, q, k, v, out, lse, dq, dk, dv, starts_q, starts_k, alibi, most_q,
                    most_k, dropout, scale, zero, causal, left, right, softcap, deterministic, *_):
        self._check("varlen_bwd", q, k, dropout)
        batch = len(starts_q) - 1
        rows = len(q) + 128 * batch
        delta = q.new_empty((q.shape[1], rows), dtype=torch.float32)
        made, sums = self._gradients(q, k, v, (dq, dk, dv), deterministic, (rows,), batch)
        if zero:
            for each in (*made, *sums[1:], delta):
                each.zero_()
        torch.ops.flash_attn_2_cuda.varlen_bwd(dout, q, k, v, starts_q, starts_k, out, lse, *made,
                                               delta, alibi, scale, causal, left, right, softcap)
        del sums
        return (*made, delta)
