"""Compiled modules for which Ferry stands in under `ferry run`: flash-attn 2's, bitsandbytes'.

    stand_ins_test.py FERRY PYTHON

The bitsandbytes of this test is a small one, built as the published one is, which ./dev campaign
runs.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
PROGRAM = pathlib.Path(__file__).parent / "programs" / "flash_attention.py"
BITSANDBYTES = {
    "__init__.py": """
import torch
library = torch.library.Library("bitsandbytes", "DEF")
for name in ("by_cpu", "by_default", "by_cuda"):
    library.define(name + "(Tensor x) -> Tensor")
    torch.library.register_fake("bitsandbytes::" + name)(lambda x: torch.empty_like(x))
library.define("write.out(Tensor x, *, Tensor! out) -> ()")
library.impl("by_cpu", lambda x: x * 2, "CPU")
library.impl("by_default", lambda x: (x * 2) * 2, "CompositeExplicitAutograd")
library.impl("write.out", lambda x, *, out: [out.copy_(x)].clear(), "CompositeExplicitAutograd")
from .backends.cuda import ops
""",
    "backends/cuda/ops.py": "raise SystemExit('a compiled kernel ends the process')"}
SCRIPT = """
import bitsandbytes, torch
ops, x = torch.ops.bitsandbytes, torch.ones(3, device="cuda")
ops.write(x, out=x)
print(ops.by_cpu(x).tolist(), ops.by_default(x).tolist())
try:
    ops.by_cuda(x)
except RuntimeError as error:
    print(error)
"""


def run(*options, script=PROGRAM, words=()):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    command = [FERRY, "run", "--python", PYTHON, "--hide-gpu", *options, script, *words]
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True,
                          timeout=300)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout.splitlines(), done.stderr


class FlashAttention(unittest.TestCase):
    def test_values_and_gradients_are_those_of_pytorchs_attention(self):
        printed, said = run()
        self.assertEqual(printed[:2], ["one sequence: True", "three sequences: True"])
        self.assertEqual(printed[2:], [
            "flash_attn_2_cuda.fwd with dropout: the virtual GPU has no stand-in for it",
            "FlashAttention takes float16 and bfloat16 alone",
            "flash_attn_2_cuda.fwd_kvcache: the virtual GPU has no stand-in for it"])
        self.assertIn("0 violations", said)
        self.assertIn("ferry run: values by stand-ins: flash_attn_2_cuda::bwd, "
                      "flash_attn_2_cuda::fwd, flash_attn_2_cuda::varlen_bwd, "
                      "flash_attn_2_cuda::varlen_fwd\n", said)

    def test_without_values_it_takes_the_time_and_the_memory(self):
        printed, said = run("--no-values", words=("large",))
        self.assertEqual(printed, ["forward: True", "time: True", "backward: True True"])
        self.assertIn("0 violations", said)


class Bitsandbytes(unittest.TestCase):
    def test_its_kernels_for_the_cpu_compute_as_one_kernel_each(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in BITSANDBYTES.items():
                path = pathlib.Path(folder) / "bitsandbytes" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            script, log = (pathlib.Path(folder) / name for name in ("script.py", "log"))
            script.write_text(SCRIPT)
            printed, said = run("--log", log, script=script)
            operations = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual(printed[0], "[2.0, 2.0, 2.0] [4.0, 4.0, 4.0]")
        self.assertIn("bitsandbytes::by_cuda: the operator has neither a CUDA kernel", printed[1])
        self.assertIn("values by stand-ins: bitsandbytes::by_cpu, bitsandbytes::by_default, "
                      "bitsandbytes::write.out\n", said)
        kernels = [each["name"].partition(" at ")[0] for each in operations
                   if each["op"] == "kernel"]
        self.assertEqual(kernels[1:], ["bitsandbytes::write.out", "bitsandbytes::by_cpu",
                                       "bitsandbytes::by_default"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
