"""The time of Triton kernels under `ferry run`, beside PyTorch's CPU operators and Triton's own
interpreter. Prints milliseconds of the processor, the least of a few runs.

    ferry run --hide-gpu bench/vgpu/triton_kernels.py       the kernels and PyTorch's operators
    TRITON_INTERPRET=1 python3 bench/vgpu/triton_kernels.py the kernels in Triton's interpreter

"First" has the compilation as well. A launch like an earlier one is faster, because its ranges are
known.
"""

import os
import sys
import time

import torch
import triton
import triton.language as tl

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
ROWS, COLUMNS = 4096, 1024


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    value = tl.load(x + i, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + i, power / tl.sum(power, axis=0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    i = tl.program_id(0) * columns + lanes
    inside = lanes < columns
    value = tl.load(x + i, mask=inside, other=0.0)
    centred = tl.where(inside, value - tl.sum(value, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    made = centred * scale * tl.load(weight + lanes, mask=inside)
    tl.store(out + i, made + tl.load(bias + lanes, mask=inside), mask=inside)


@triton.jit
def product(a, b, out, n, BLOCK: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for begin in range(0, n, K):
        inner = begin + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * n + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total)


def timed(call, turns):
    """The least time of some calls, in milliseconds."""
    least = float("inf")
    for _ in range(turns):
        begin = time.process_time()
        call()
        if not INTERPRETED:
            torch.cuda.synchronize()
        least = min(least, 1000 * (time.process_time() - begin))
    return least


def cases():
    x, y = torch.randn(2, ROWS, COLUMNS)
    weight, bias = torch.randn(2, COLUMNS)
    a, b = torch.randn(2, 512, 512)
    made = torch.empty_like(x)
    on = [tensor.to(DEVICE) for tensor in (x, y, weight, bias, a, b)]
    out, square = torch.empty_like(on[0]), torch.empty_like(on[4])
    count = ROWS * COLUMNS
    yield ("add", lambda: add[(count // 1024,)](on[0], on[1], out, count, BLOCK=1024),
           lambda: torch.add(x, y, out=made), lambda: out.cpu() - (x + y))
    yield ("softmax", lambda: softmax[(ROWS,)](on[0], out, COLUMNS, BLOCK=1024),
           lambda: x.softmax(1), lambda: out.cpu() - x.softmax(1))
    norm = torch.nn.functional.layer_norm
    yield ("layer norm",
           lambda: layer_norm[(ROWS,)](on[0], on[2], on[3], out, COLUMNS, 1e-5, BLOCK=1024),
           lambda: norm(x, (COLUMNS,), weight, bias),
           lambda: out.cpu() - norm(x, (COLUMNS,), weight, bias))
    yield ("product 512", lambda: product[(8, 8)](on[4], on[5], square, 512, BLOCK=64, K=32),
           lambda: a @ b, lambda: (square.cpu() - a @ b) / 100)


def main():
    torch.set_num_threads(1)
    turns = 1 if INTERPRETED else int(os.environ.get("FERRY_TURNS", "7"))
    for name, launch, operator, difference in cases():
        if INTERPRETED:
            print(f"{name}: interpreted {timed(launch, turns):.0f}")
            continue
        first = timed(launch, 1)
        again, pytorch = timed(launch, turns), timed(operator, turns)
        if difference().abs().max() > 1e-4:
            sys.exit(f"{name} is wrong")
        print(f"{name}: first {first:.1f}, again {again:.1f}, PyTorch {pytorch:.2f}, "
              f"times {again / pytorch:.1f}")


main()
