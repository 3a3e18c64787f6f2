"""What compilers would make of a script is not run: it runs as it is written, and the end says so.

    compilers_test.py FERRY PYTHON
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
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
ATTENTION = """
import torch
from torch.nn.attention.flex_attention import flex_attention
q, k, v = torch.randn(3, 1, 2, 128, 16, device="cuda", requires_grad=True)
made = torch.compile(flex_attention)(q, k, v)
torch.testing.assert_close(made, torch.nn.functional.scaled_dot_product_attention(q, k, v))
"""
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


def run(code, **environment):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.py"
        script.write_text(code)
        return subprocess.run([FERRY, "run", "--python", PYTHON, "--hide-gpu", script], text=True,
                              env=dict(os.environ, OMP_NUM_THREADS="1", **environment),
                              capture_output=True, timeout=300)


class Compilers(unittest.TestCase):
    def runs(self, code, **environment):
        done = run(code, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines(), done.stderr.splitlines()

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

    def test_attention_that_is_compiled_to_be_fast(self):
        self.runs(ATTENTION)

    def test_scripted_functions_are_not_fused(self):
        self.runs(SCRIPTED)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
