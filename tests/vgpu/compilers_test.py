"""What compilers make of a script runs. With a version of Triton that the virtual GPU does not
support, the script runs as it is written, and the end says so.

    compilers_test.py FERRY PYTHON
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
PROGRAM = pathlib.Path(__file__).parent / "programs" / "compiled.py"
SAYING = "ferry run: torch.compile: {} ran as written: compiled kernels are not run here"

# What is compiled knows that it is; what runs as it is written does not.
BEGIN = """
import torch
from torch.compiler import is_compiling

def both(x):
    return torch.nn.functional.gelu(x) * (4 if is_compiling() else 2)

def breaks(x):
    if x.sum().item() > 0:
        print("breaks", x.device.type)
    return x + 1

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.linear(x).relu().sum() * (4 if is_compiling() else 2)
"""
AS_WRITTEN = BEGIN + """
torch.compile(both)  # is not called
for device in ("cuda", "cpu"):
    x = torch.ones(3, device=device)
    for compiled in (torch.compile(both), torch.compile(both, mode="reduce-overhead"),
                     torch.compile(both, backend="cudagraphs"),
                     torch.compiler.compile(both, dynamic=True, backend="inductor"),
                     torch._dynamo.optimize()(both)):
        assert torch.equal(compiled(x), both(x)) and torch.equal(compiled(x), both(x))
    torch.compile(fullgraph=True)(breaks)(x)
    model = Model().to(device)
    compiled = torch.compile(model)
    assert type(compiled).__name__ == "OptimizedModule" and "_orig_mod.linear.bias" in (
        compiled.state_dict())
    compiled(x).backward()
    assert model.linear.bias.grad.item() in (0, 2)
    model.compile(options={"max_autotune": True})
    assert model(x) == compiled(x) == Model.forward(model, x)
try:
    torch.compile(both, mode="fast")
except RuntimeError as error:
    print(error)
"""
OTHERS = BEGIN + """
def mine(graph, inputs):
    print("mine", len(graph.graph.nodes))
    return graph.forward

x = torch.ones(3, device="cuda", requires_grad=True)
for backend in ("eager", "aot_eager", mine):
    assert torch.equal(torch.compile(both, backend=backend)(x), both(x) * 2), backend
for call in (lambda: torch._inductor.compile(torch.fx.symbolic_trace(torch.nn.ReLU()), [x]),
             lambda: torch.compile(both, backend=lambda *given: torch._inductor.compile(*given))(x)):
    try:
        call()
    except Exception as error:
        print(" ".join(str(error).split()))
"""
# Work on another stream, for which nobody waits.
RACE = """
import sys, torch

@torch.compile
def scaled(x, y):
    return x * 2 + y

x, y = torch.ones(2, 10_000, device="cuda")
scaled(x, y)  # compiles
side = torch.cuda.Stream()
torch.cuda.synchronize()
x.fill_(3)
if "waits" in sys.argv:
    side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    scaled(x, y)
torch.cuda.synchronize()
"""
# A Triton kernel of the script's own, inside of what is compiled.
BEYOND = """
import torch, triton
import triton.language as tl

@triton.jit
def twice(x, out, n: tl.constexpr):
    i = tl.arange(0, 1024)
    tl.store(out + i, 2 * tl.load(x + i), mask=i < n)

@torch.compile
def through(x):
    out = torch.empty_like(x)
    twice[(1,)](x, out, n=1000)
    return out + 1

through(torch.ones(1000, device="cuda"))
"""
TRAINS = """
import gc, sys, torch
import torch._functorch.config
torch._functorch.config.activation_memory_budget = 0.9  # PyTorch solves a knapsack on the CPU
sys.path.insert(0, {folder!r})
sys.argv = sys.argv[:1]
from compiled import Model, words
model = Model(2, 256).cuda()
optimizer = torch.optim.SGD(model.parameters())
given = words(1024).cuda()
for _ in range(3):
    model(given).backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()
""".format(folder=str(PROGRAM.parent))
# Backward begins while what forward saved is still copied to the host.
OFFLOADED = """
import sys, torch
sys.path.insert(0, {folder!r})
sys.argv = sys.argv[:1]
import torch_ferry as ferry
from compiled import Model, words
model = Model(2, 64).cuda()
compiled, offload = torch.compile(model), ferry.offload(exempt=model)
for _ in range(2):
    with offload:
        loss = compiled(words(256).cuda())
    loss.backward()
assert offload.statistics().offloaded_count > 0
""".format(folder=str(PROGRAM.parent))
SCRIPTED = """
import torch

@torch.jit.script
def swish(x, b):
    return (x + b) * torch.sigmoid(x + b)

x = torch.randn(64, 64, device="cuda", requires_grad=True)
with torch.jit.fuser("fuser1"):
    for i in range(5):
        x.grad = None
        swish(x, torch.zeros(64, device="cuda")).sum().backward()
leaf = x.detach().cpu().requires_grad_()
(leaf * torch.sigmoid(leaf)).sum().backward()
torch.testing.assert_close(x.grad.cpu(), leaf.grad)
"""


def run(code, *arguments, options=(), **environment):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.py"
        script.write_text(code)
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
        return subprocess.run(
            [FERRY, "run", "--python", PYTHON, "--hide-gpu", *options, script, *arguments],
            text=True, env=dict(os.environ, OMP_NUM_THREADS="1", **environment),
            capture_output=True, timeout=500)


def is_triton_run():
    code = "import importlib.metadata as m; print(m.version('triton'))"
    found = subprocess.run([PYTHON, "-c", code], text=True, capture_output=True).stdout
    return found.startswith("3.9.")


class Runs(unittest.TestCase):
    def runs(self, code, *arguments, **named):
        done = run(code, *arguments, **named)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines(), done.stderr.splitlines()


@unittest.skipUnless(is_triton_run(), "this Triton is not run")
class Compiled(Runs):
    def test_what_is_compiled_computes_what_the_script_does(self):
        cases = "dynamic graphs recomputed layout tuned optimizer dropped attention".split()
        with tempfile.TemporaryDirectory() as folder:
            printed, told = self.runs(PROGRAM.read_text(), *cases, TORCHINDUCTOR_CACHE_DIR=folder)
            files = {path.suffix for path in pathlib.Path(folder).rglob("*")}
        self.assertEqual(printed, cases)
        self.assertIn(": 0 violations", told[-1])
        self.assertNotIn("not supported", "\n".join(told))
        self.assertTrue({".ttir", ".py"} <= files and not {".cubin", ".ptx"} & files, files)

    def test_a_missing_wait_is_found_at_the_function_that_was_compiled(self):
        self.runs(RACE, "waits")
        done = run(RACE)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"read after write .*triton_poi_fused_add_mul_0 at "
                                      r"\S*script.py:4 in scaled")

    def test_an_access_out_of_bounds_of_a_kernel_inside(self):
        done = run(BEYOND)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"kernel twice reads 4 bytes out of bounds, at byte 4000")

    def test_policies_that_compile_a_model(self):
        # One cache: what is offloaded must not find the backward of what is not.
        policies = ("keep", "compile", "compile-checkpoint", "compile-offload")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows.json"
            self.runs(TRAINS, TORCHINDUCTOR_CACHE_DIR=folder,
                      options=["--no-values", "--policy", ",".join(policies), "--json", file])
            rows = json.loads(file.read_text())["rows"]
        self.assertEqual([(row["policy"], row["violations"]) for row in rows],
                         [(policy, []) for policy in policies])
        keep, compiled, checkpointed, offloaded = (row["simulated"] for row in rows)
        self.assertNotEqual(compiled["steps"], keep["steps"])
        self.assertLess(checkpointed["allocated_bytes"], compiled["allocated_bytes"])
        self.assertLess(offloaded["allocated_bytes"], compiled["allocated_bytes"])
        self.assertGreater(offloaded["pinned_bytes"], 1 << 20)

    def test_backward_does_not_write_what_is_still_copied_to_the_host(self):
        packages = str(pathlib.Path(FERRY).resolve().parent / "python")
        _, told = self.runs(OFFLOADED, options=["--no-values"], PYTHONPATH=packages)
        self.assertIn(": 0 violations", told[-1])


class AsWritten(Runs):
    """With an old Triton, as its metadata say, which are found first."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        metadata = pathlib.Path(folder.name) / "triton-3.0.0.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.0.0\n")
        self._path = folder.name

    def runs(self, code, **environment):
        return super().runs(code, PYTHONPATH=self._path, **environment)

    def test_functions_and_modules_run_as_written_and_the_end_counts_them(self):
        printed, told = self.runs(AS_WRITTEN)
        self.assertEqual(printed[:2], ["breaks cuda", "breaks cpu"])
        self.assertRegex(printed[2], "mode=fast")
        self.assertEqual([line for line in told if "torch.compile" in line],
                         [SAYING.format("16 functions")])

    def test_other_backends_stay_what_they_are_and_inductor_itself_is_refused(self):
        printed, told = self.runs(OTHERS)
        refusal = "the virtual GPU does not run compiled kernels (torch._inductor)"
        self.assertRegex(printed[0], r"mine \d")
        self.assertEqual([refusal in line for line in printed], [False, True, True], printed)
        self.assertNotIn("torch.compile:", "\n".join(told))
        self.assertIn("so these calls failed: torch._inductor (2 times)", "\n".join(told))

    def test_what_the_environment_says_stays(self):
        code = BEGIN + "print(torch.compile(both)(torch.ones(1, device='cuda')).shape)\n"
        for name, said in (("TORCH_COMPILE_DISABLE", False), ("FERRY_UNUSED", True)):
            _, told = self.runs(code, **{name: "1"})
            self.assertEqual(SAYING.format("1 function") in told, said, told)

    def test_scripted_functions_are_not_fused(self):
        self.runs(SCRIPTED)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
