"""Triton kernels under `ferry run`: their values, the judge's verdict, memory and time without
values, and accesses out of bounds.

    triton_test.py FERRY PYTHON
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
PROGRAMS = pathlib.Path(__file__).parent / "programs"
BEGIN = """
import sys
sys.path.insert(0, {programs!r})
import torch, triton
import triton.language as tl
from triton_kernels import add, histogram, product, softmax
n = 100_000
def launch(x, y, out, n=n):
    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
""".format(programs=str(PROGRAMS))
STREAMS = """
x, y = torch.ones(2, n, device="cuda")
out, side = torch.empty_like(x), torch.cuda.Stream()
torch.cuda.synchronize()
x.fill_(3)
if "before" in sys.argv:
    side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    launch(x[1000:], y[1000:], out[1000:], n - 2000)
if "disjoint" in sys.argv:
    out[:1000].fill_(4)
if "after" in sys.argv:
    torch.cuda.current_stream().wait_stream(side)
print(out[1000:-1000].sum().item() if "disjoint" not in sys.argv else 0)
"""
# An access that no mask keeps inside, and one whose address is loaded.
BEYOND = """
@triton.jit
def beyond(x, out, index, BY_DATA: tl.constexpr):
    i = tl.arange(0, 1024)
    if BY_DATA:
        tl.store(out + tl.load(index), 1.0)
    else:
        tl.store(out + i, tl.load(x + i), mask=i < 8)

x, out = torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda")
# A second storage of the first's memory takes nothing away from it.
part = torch.utils.dlpack.from_dlpack(x[:10])
launch(part, x, out, 10)
launch(x, part, out, 10)
index = torch.tensor([1000], device="cuda")
try:
    beyond[(1,)](x, out, index, BY_DATA="data" in sys.argv)
    torch.cuda.synchronize()
except RuntimeError as error:
    print(error)
"""
MEMORY = """
torch.cuda.reset_peak_memory_stats()
x = torch.empty(1 << 27, device="cuda")
out = torch.empty_like(x)
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begin.record()
softmax[(132,)](x, out, 1 << 17, 1 << 10, 1 << 10, BLOCK=1 << 10)
end.record()
torch.cuda.synchronize()
print(torch.cuda.max_memory_allocated(), begin.elapsed_time(end))
a, b = torch.empty(2, 2048, 2048, dtype=torch.float16, device="cuda")
out = torch.empty_like(a)
run = lambda: product.fn[(16, 16)](a, b, out, 2048, 2048, 2048, M=128, N=128, K=32)
print(triton.testing.do_bench(run))
"""
# What does not fit an H100's shared memory, and a kernel compiled before its launch, which prints.
FITS = """
@triton.jit
def shows(x, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x + 2 * tl.program_id(0) + tl.arange(0, BLOCK)))

a, b = torch.ones(2, 256, 256, device="cuda")
out = torch.empty(256, 256, device="cuda")
for m, n, k in ((128, 128, 64), (256, 256, 128)):
    try:
        kernel = product.fn[(2, 2)](a, b, out, 256, 256, 256, M=m, N=n, K=k, num_stages=3)
        print(kernel.metadata.shared)
    except triton.runtime.errors.OutOfResources as error:
        print(error)
x = torch.tensor([1, 2, 3, -4], dtype=torch.int32, device="cuda")
kernel = shows.warmup(x, BLOCK=2, grid=(1,))
kernel[(2, 1, 1)](x, 2)
torch.cuda.synchronize()
"""
NOT_RUN = """
@triton.jit
def assembly(x):
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x)], tl.int32, True, 1)
    tl.store(x, y)

for device in ("cuda", "cpu"):
    try:
        assembly[(1,)](torch.ones(1, dtype=torch.int32, device=device))
    except (NotImplementedError, ValueError) as error:
        print(error)
try:
    launch(*torch.ones(3, n))
except ValueError as error:
    print(error)
"""


def run(code, *words, options=()):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.py"
        script.write_text(BEGIN + code)
        environment = dict(os.environ, OMP_NUM_THREADS="1", TRITON_CACHE_DIR=folder,
                           TRITON_DEFAULT_FP_FUSION="1")
        return subprocess.run([FERRY, "run", "--python", PYTHON, "--hide-gpu", *options, script,
                               *words], env=environment, capture_output=True, text=True,
                              timeout=300)


class TritonTest(unittest.TestCase):
    def test_kernels_compute_what_pytorch_computes(self):
        done = run("import runpy\nrunpy.run_module('triton_kernels', run_name='__main__')\n")
        self.assertEqual(done.stdout, "done\n", done.stderr)
        self.assertIn("0 violations", done.stderr)

    def test_a_missing_wait_is_reported_at_the_launch(self):
        done = run(STREAMS, "before", "after", options=["--side-first"])
        self.assertEqual(done.stdout, "392000.0\n", done.stderr)
        self.assertIn("0 violations", done.stderr)
        done = run(STREAMS, "after", options=["--side-first"])
        self.assertNotEqual(done.stdout, "392000.0\n", done.stderr)
        self.assertRegex(done.stderr, r"read after write of 392000 bytes at 0x\w+: add at "
                                      r".*script.py:\d+ in launch on stream \"stream 1\"")
        self.assertIn("1 violation", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_other_bytes_of_the_same_block_are_no_race(self):
        done = run(STREAMS, "before", "disjoint")
        self.assertIn("0 violations", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_access_out_of_bounds_is_reported_with_its_line(self):
        lines = (BEGIN + BEYOND).splitlines()
        line = 1 + next(i for i, text in enumerate(lines) if "tl.load(x + i)" in text)
        done = run(BEYOND)
        self.assertRegex(done.stdout, rf"script.py:{line}: kernel beyond reads 4 bytes out of "
                                      "bounds, at byte 4000 of a tensor of 4000 bytes")
        done = run(BEYOND, "data")
        self.assertRegex(done.stderr, rf"script.py:{line - 2}: kernel beyond writes 4 bytes")
        self.assertIn("CUDA error", done.stdout)

    def test_without_values_memory_and_time_are_the_same(self):
        done = run(MEMORY, options=["--no-values", "--card", "h100"])
        (peak, softmax), (product,) = (map(float, line.split())
                                       for line in done.stdout.splitlines())
        self.assertEqual(peak, 2 << 29, done.stderr)
        self.assertTrue(0.3 < softmax < 0.5, softmax)  # 1.07 GB at 3.35 TB/s, and less than that
        self.assertTrue(0.017 < product < 0.04, product)  # 17 GFLOP at 989 TFLOP/s
        self.assertIn("0 violations", done.stderr)

    def test_shared_memory_is_the_cards_and_kernels_print(self):
        done = run(FITS)
        lines = done.stdout.splitlines()
        self.assertGreater(int(lines[0]), 65536, done.stderr)
        self.assertRegex(lines[1], "shared memory, Required: [0-9]+, Hardware limit: 232448")
        self.assertEqual(lines[2:], ["pid (0, 0, 0) idx (0) x: 1", "pid (0, 0, 0) idx (1) x: 2",
                                     "pid (1, 0, 0) idx (0) x: 3", "pid (1, 0, 0) idx (1) x: -4"])

    def test_what_is_not_run_is_named(self):
        done = run(NOT_RUN)
        self.assertRegex(done.stdout, r"script.py:\d+: the virtual GPU does not run "
                                      r"tt.elementwise_inline_asm \(kernel assembly\)")
        self.assertIn("so these calls failed: assembly, of Triton (2 times)", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "Pointer argument (at 0) cannot be "
                         "accessed from Triton (cpu tensor?)")


class OtherTritonTest(unittest.TestCase):
    def test_its_kernels_are_refused_by_its_version(self):
        done = run("launch(*torch.ones(3, n, device='cuda'))\n")
        self.assertRegex(done.stderr, r"does not run compiled kernels \(add, of Triton 3\.\d")


def version():
    asked = subprocess.run([PYTHON, "-c", "import importlib.metadata as m; "
                            "print(m.version('triton'))"], capture_output=True, text=True)
    return asked.stdout


if __name__ == "__main__":
    cases = TritonTest if version().startswith("3.9.") else OtherTritonTest
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(cases)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
