"""Triton kernels, and what each must compute, by PyTorch's operators on the same device.

    triton_kernels.py     prints the name of each kernel whose values are wrong, and "done"
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

N = 1000


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, rows, columns, stride, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        i = tl.arange(0, BLOCK)
        inside = i < columns
        value = tl.load(x + row * stride + i, mask=inside, other=-float("inf")).to(tl.float32)
        power = tl.exp(value - tl.max(value, axis=0))
        tl.store(out + row * stride + i, power / tl.sum(power, axis=0), mask=inside)


@triton.jit
def layer_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < columns
    value = tl.load(x + tl.program_id(0) * columns + i, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(inside, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    factor = tl.load(weight + i, mask=inside)
    tl.store(out + tl.program_id(0) * columns + i, centred * scale * factor, mask=inside)


@triton.jit
def column_sums(x, out, lock, columns, BLOCK: tl.constexpr):
    """Each program adds its row to the sums, while it holds the lock."""
    i = tl.arange(0, BLOCK)
    inside = i < columns
    row = tl.load(x + tl.program_id(0) * columns + i, mask=inside, other=0.0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + i, tl.load(out + i, mask=inside) + row, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.atomic_add(counts + tl.load(x + i, mask=inside, other=0), 1, mask=inside)


@triton.autotune([triton.Config({"M": 32, "N": 64, "K": 32}),
                  triton.Config({"M": 16, "N": 32, "K": 64})], key=["m", "n", "k"])
@triton.jit
def product(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for begin in range(0, k, K):
        inner = begin + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + inner[None, :],
                       mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(b + inner[:, None] * n + columns[None, :],
                        mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total.to(out.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def tiles(x, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    """Copies by tensor descriptors, transposed."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [R, C])
    target = tl.make_tensor_descriptor(out, [columns, rows], [rows, 1], [C, R])
    i, j = tl.program_id(0) * R, tl.program_id(1) * C
    target.store([j, i], tl.trans(source.load([i, j])))


@triton.jit
def doubled(source, target, R: tl.constexpr, C: tl.constexpr):
    """Two descriptors that the host made."""
    i, j = tl.program_id(0) * R, tl.program_id(1) * C
    target.store([i, j], source.load([i, j]) * 2)


@triton.jit
def attention(q, k, v, out, scale, WIDTH: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Causal, a block of queries a program, with a running maximum."""
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, WIDTH)
    query = tl.load(q + rows[:, None] * WIDTH + columns[None, :])
    largest, total = tl.full((M,), -float("inf"), tl.float32), tl.zeros((M,), tl.float32)
    made = tl.zeros((M, WIDTH), tl.float32)
    for begin in range(0, (tl.program_id(0) + 1) * M, N):
        at = begin + tl.arange(0, N)
        key = tl.load(k + at[:, None] * WIDTH + columns[None, :])
        score = tl.dot(query, tl.trans(key)) * scale
        score = tl.where(rows[:, None] >= at[None, :], score, -float("inf"))
        larger = tl.maximum(largest, tl.max(score, axis=1))
        score = tl.exp(score - larger[:, None])
        shrinks = tl.exp(largest - larger)
        total = total * shrinks + tl.sum(score, axis=1)
        value = tl.load(v + at[:, None] * WIDTH + columns[None, :])
        made = tl.dot(score.to(value.dtype), value, made * shrinks[:, None])
        largest = larger
    tl.store(out + rows[:, None] * WIDTH + columns[None, :], made / total[:, None])


@triton.jit
def square_of_f8(a, out, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(a + i[:, None] * N + i[None, :])
    tl.store(out + i[:, None] * N + i[None, :], tl.dot(value, value))


@triton.jit
def second(a, b):
    return tl.where(b > a, b, a)


@triton.jit
def row_work(x, out, index, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = x + tl.program_id(0) * BLOCK
    out += tl.program_id(0) * BLOCK
    value = tl.load(row + i)
    if WHAT == "sort":
        value = tl.sort(value)
    if WHAT == "cumsum":
        value = tl.cumsum(value, 0)
    if WHAT == "cummax":
        value = tl.associative_scan(value, 0, second, reverse=True)
    if WHAT == "argmax":
        value = value * 0 + tl.argmax(value, 0)
    if WHAT == "gather":
        value = tl.gather(value, BLOCK - 1 - i, 0)
    if WHAT == "functions":
        value = tl.erf(value) + libdevice.tanh(value) + tl.rsqrt(tl.abs(value) + 1)
    if WHAT == "pairs":
        left, right = tl.split(tl.join(value, value * 2))
        value = left - right
    if WHAT == "if":
        if tl.program_id(0) % 2 == 1:
            value = -value
        else:
            value += tl.load(index)
    if WHAT == "return":
        if tl.load(index + tl.program_id(0)) == 0:
            return
    tl.store(out + i, value)


def row_works(x, index):
    """What row_work makes of rows, by name."""
    odd = (torch.arange(len(x), device="cuda") % 2 == 1)[:, None]
    return {"sort": x.sort(1)[0], "cumsum": x.cumsum(1), "cummax": x.flip(1).cummax(1)[0].flip(1),
            "argmax": x.argmax(1, keepdim=True).float().expand_as(x), "gather": x.flip(1),
            "functions": x.erf() + x.tanh() + (x.abs() + 1).rsqrt(), "pairs": x - 2 * x,
            "if": torch.where(odd, -x, x + index[0]),
            "return": torch.where(index[:len(x), None] == 0, 0, x)}


def cases():
    x, y = torch.randn(2, N, device="cuda")
    out = torch.empty(N, device="cuda")
    add[(triton.cdiv(N, 256),)](x, y, out, N, BLOCK=256)
    yield "add", out, x + y
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int8):
        a, b = (x * 50).to(dtype), (y * 50).to(dtype)
        made = torch.empty_like(a)
        add[(triton.cdiv(N, 256),)](a, b, made, N, BLOCK=256)
        yield f"add {dtype}", made, a + b
    rows = torch.randn(37, 201, device="cuda")
    out = torch.empty_like(rows)
    softmax[(5,)](rows, out, 37, 201, 201, BLOCK=256)
    yield "softmax", out, rows.softmax(1)
    weight = torch.randn(201, device="cuda")
    layer_norm[(37,)](rows, weight, out, 201, 1e-5, BLOCK=256)
    yield "layer_norm", out, torch.nn.functional.layer_norm(rows, (201,), weight)
    sums, lock = torch.zeros(201, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    column_sums[(37,)](rows, sums, lock, 201, BLOCK=256)
    yield "column_sums", sums, rows.sum(0)
    numbers = torch.randint(0, 10, (N,), device="cuda")
    counts = torch.zeros(10, dtype=torch.int32, device="cuda")
    histogram[(triton.cdiv(N, 128),)](numbers, counts, N, BLOCK=128)
    yield "histogram", counts, numbers.bincount(minlength=10).int()
    for dtype in (torch.float32, torch.float16):
        a, b = torch.randn(70, 90, device="cuda"), torch.randn(90, 50, device="cuda")
        a, b, made = a.to(dtype), b.to(dtype), torch.empty(70, 50, dtype=dtype, device="cuda")
        product[lambda meta: (triton.cdiv(70, meta["M"]), triton.cdiv(50, meta["N"]))](
            a, b, made, 70, 50, 90)
        yield f"product {dtype}", made, (a.float() @ b.float()).to(dtype)
    rows, flipped = torch.randn(37, 204, device="cuda"), torch.empty(204, 37, device="cuda")
    tiles[(5, 13)](rows, flipped, 37, 204, R=8, C=16)
    yield "tiles", flipped, rows.t()
    twice = torch.empty_like(rows)
    doubled[(5, 13)](TensorDescriptor.from_tensor(rows, [8, 16]),
                     TensorDescriptor.from_tensor(twice, [8, 16]), R=8, C=16)
    yield "doubled", twice, 2 * rows
    q, k, v = torch.randn(3, 128, 32, device="cuda")
    made = torch.empty_like(q)
    attention[(2,)](q, k, v, made, 32**-0.5, WIDTH=32, M=64, N=32)
    wanted = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None],
                                                              is_causal=True)
    yield "attention", made, wanted[0]
    small = torch.randn(32, 32, device="cuda").to(torch.float8_e5m2)
    made = torch.empty(32, 32, device="cuda")
    square_of_f8[(1,)](small, made, N=32)
    yield "square_of_f8", made, small.float() @ small.float()
    x = torch.randn(6, 128, device="cuda")
    index = torch.tensor([3, 0, 1, 1, 0, 1], dtype=torch.int32, device="cuda")
    for what, wanted in row_works(x, index).items():
        made = torch.zeros_like(x)
        row_work[(6,)](x, made, index, WHAT=what, BLOCK=128)
        yield what, made, wanted


if __name__ == "__main__":
    torch.manual_seed(0)
    for name, made, wanted in cases():
        if not torch.allclose(made.double(), wanted.double(), rtol=1e-5, atol=1e-5):
            print(name, (made.double() - wanted.double()).abs().max().item())
    print("done")
