"""flash-attn 2's compiled module, for which Ferry stands in: called as flash_attn 2.8 calls it.

    flash_attention.py [large]     run by `ferry run`

Prints whether values and gradients are those of PyTorch's attention, and what is refused. With
`large`, which needs no values: the time against PyTorch's, and the memory of both directions.
"""

import sys

import flash_attn_2_cuda
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

CLOSE = {"rtol": 0.02, "atol": 0.02}


def forward(q, k, v, causal=True, dropout=0.0):
    return flash_attn_2_cuda.fwd(q, k, v, None, None, dropout, q.shape[-1] ** -0.5, causal, -1, -1,
                                 0.0, False, None)


def backward(gradient, q, k, v, out, lse, causal=True):
    return flash_attn_2_cuda.bwd(gradient, q, k, v, out, lse, None, None, None, None, 0.0,
                                 q.shape[-1] ** -0.5, causal, -1, -1, 0.0, False, None, None)


def together_forward(q, k, v, starts, longest):
    return flash_attn_2_cuda.varlen_fwd(
        q, k, v, None, starts, starts, None, None, None, None, longest, longest, 0.0,
        q.shape[-1] ** -0.5, False, True, -1, -1, 0.0, False, None)


def together_backward(gradient, q, k, v, out, lse, starts, longest):
    return flash_attn_2_cuda.varlen_bwd(
        gradient, q, k, v, out, lse, None, None, None, starts, starts, None, longest, longest, 0.0,
        q.shape[-1] ** -0.5, False, True, -1, -1, 0.0, False, None, None)


def of_pytorch(q, k, v, gradient):
    """The output and the gradients, in double precision."""
    q, k, v = (each.double().requires_grad_() for each in (q, k, v))
    heads = [each.transpose(1, 2) for each in (q, k, v)]
    out = attention(*heads, is_causal=True, enable_gqa=True).transpose(1, 2)
    return [out, *torch.autograd.grad(out, (q, k, v), gradient.double())]


def close(mine, wanted):
    return all(torch.allclose(one.cpu().double(), other, **CLOSE)
               for one, other in zip(mine, wanted, strict=True))


def small():
    torch.manual_seed(0)
    q, gradient = torch.randn(2, 1, 40, 4, 16, dtype=torch.bfloat16)
    k, v = torch.randn(2, 1, 40, 2, 16, dtype=torch.bfloat16)
    there = [each.cuda() for each in (q, k, v)]
    out, lse, _, _ = forward(*there)
    found = backward(gradient.cuda(), *there, out, lse)[:3]
    print("one sequence:", close([out, *found], of_pytorch(q, k, v, gradient)))
    # Three sequences, one after the other.
    pieces = [slice(0, 7), slice(7, 30), slice(30, 40)]
    starts = torch.tensor([0, 7, 30, 40], dtype=torch.int32, device="cuda")
    rows = [each[0] for each in there]
    out, lse, _, _ = together_forward(*rows, starts, 23)
    found = together_backward(gradient[0].cuda(), *rows, out, lse, starts, 23)[:3]
    wanted = [of_pytorch(*(each[:, piece] for each in (q, k, v, gradient))) for piece in pieces]
    print("three sequences:", close([out, *found],
                                    [torch.cat(each, 1)[0] for each in zip(*wanted, strict=True)]))
    for call in (lambda: forward(*there, dropout=0.1), lambda: forward(*(x.float() for x in there)),
                 lambda: flash_attn_2_cuda.fwd_kvcache(*there)):
        try:
            call()
        except (NotImplementedError, RuntimeError) as error:
            print(error)


def timed(call):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    result = call()
    end.record()
    torch.cuda.synchronize()
    return result, begin.elapsed_time(end)


def large():
    q, k, v = (torch.empty(1, 8192, 16, 128, dtype=torch.bfloat16, device="cuda") for _ in "qkv")
    torch.cuda.reset_peak_memory_stats()
    (out, lse, _, _), mine = timed(lambda: forward(q, k, v, dropout=0.1))
    taken = torch.cuda.max_memory_allocated() - 3 * q.nbytes
    # The output, the sums, two numbers of a random state.
    print("forward:", taken == out.nbytes + 8192 * 16 * 4 + 512)
    heads = [each.transpose(1, 2) for each in (q, k, v)]
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        _, wanted = timed(lambda: attention(*heads, is_causal=True))
    print("time:", abs(mine - wanted) < 0.02 * wanted)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    _, twice = timed(lambda: backward(out, q, k, v, out, lse))
    taken = torch.cuda.max_memory_allocated() - before
    # Three gradients, the rows' sums, and the queries' gradient in single precision.
    print("backward:", taken == 3 * q.nbytes + lse.nbytes + 2 * q.nbytes, 2 < twice / mine < 3)


large() if "large" in sys.argv else small()
