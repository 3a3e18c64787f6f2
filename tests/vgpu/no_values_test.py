"""`ferry run --no-values`: memory, streams and time of programs whose arithmetic nobody waits for.

    no_values_test.py FERRY PYTHON
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
PROGRAMS = pathlib.Path(__file__).parent / "programs"
TORCH = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"],
                       capture_output=True, text=True, check=True).stdout
IS_2_12 = TORCH.startswith("2.12.")

# As before PyTorch 2.15: each library keeps its workspace.
KEPT = {"TORCH_CUBLAS_WORKSPACE_CACHE": "1", "TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"}

# Bytes after forward, their peak, the reserved peak; of the first step and the second. Measured by
# PyTorch 2.11's own host code for an H100, over a CUDA runtime whose launches did nothing.
LLAMA = {
    "keep": "73218599424 81623918592 84259373056\n73252153856 81657473024 84259373056\n",
    "checkpoint": "22717114880 33072286720 34598813696\n22750669312 33072286720 34598813696\n",
}


# With expandable segments: the peak, and the peak that is reserved. PyTorch 2.12 maps 160 MiB more.
EXPANDABLE = {"keep": (81657473024, 84049657856),
              "checkpoint": (33072286720, 34019999744 if IS_2_12 else 33852227584)}


def run(*words, allocator="", **variables):
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTORCH_CUDA_ALLOC_CONF=allocator,
                       **variables)
    command = [FERRY, "run", "--python", PYTHON, "--hide-gpu", "--no-values", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def run_code(code, *options, **variables):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.py"
        script.write_text("import torch\n" + code)
        return run(*options, script, **variables)


class NoValues(unittest.TestCase):
    def test_llama_3_8b_takes_the_memory_that_pytorch_takes_to_the_byte(self):
        for mode, expected in LLAMA.items():
            done = run(PROGRAMS / "llama.py", mode, **KEPT)
            self.assertEqual(done.stdout, expected, done.stderr)
            self.assertIn("0 violations", done.stderr)
        # Of all children so far: the device's memory was never there.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 3 << 20)

    def test_and_with_expandable_segments(self):
        for mode, expected in EXPANDABLE.items():
            done = run(PROGRAMS / "llama.py", mode, allocator="expandable_segments:True", **KEPT)
            self.assertEqual(done.returncode, 0, done.stderr)
            steps = [list(map(int, line.split())) for line in done.stdout.splitlines()]
            self.assertEqual((steps[1][1], steps[1][2]), expected)
            self.assertIn("0 violations", done.stderr)

    def test_another_card_has_workspaces_of_another_size(self):
        code = ("a = torch.empty(1024, 1024, device='cuda')\n"
                "b = torch.empty(1024, 1024, device='cuda')\n"
                "before = torch.cuda.memory_allocated()\n"
                "torch.mm(a, a, out=b)\n"
                "print(torch.cuda.memory_allocated() - before)\n"
                "torch.addmm(b[0], a, a, out=b)\n"
                "print(torch.cuda.memory_allocated() - before)\n")
        for card, bytes_ in (("h100", 32 << 20), ("a100", 8519680)):
            # cuBLASLt's workspace in PyTorch 2.12 is as large as cuBLAS's, else 1 MiB.
            both = bytes_ + (bytes_ if IS_2_12 else 1 << 20)
            self.assertEqual(run_code(code, "--card", card, **KEPT).stdout.split(),
                             [f"{bytes_}", f"{both}"])

    @unittest.skipUnless(TORCH >= "2.15", "PyTorch keeps workspaces")
    def test_a_call_gives_its_workspace_back(self):
        code = ("a = torch.empty(1024, 1024, device='cuda')\n"
                "b = torch.empty(1024, 1024, device='cuda')\n"
                "for product in (lambda: torch.mm(a, a, out=b),\n"
                "                lambda: torch.addmm(b[0], a, a, out=b)):\n"
                "    torch.cuda.reset_peak_memory_stats()\n"
                "    before = torch.cuda.memory_allocated()\n"
                "    product()\n"
                "    print(torch.cuda.max_memory_allocated() - before)\n"
                "    print(torch.cuda.memory_allocated() - before)\n")
        self.assertEqual(run_code(code).stdout.split(), [f"{32 << 20}", "0", f"{1 << 20}", "0"])
        done = run_code(code, TORCH_CUBLAS_WORKSPACE_CACHE="1")  # the second one finds the first's
        self.assertEqual(done.stdout.split(), [f"{32 << 20}", f"{32 << 20}", "0", "0"])

    def test_kernels_take_what_cudas_take_while_they_run(self):
        # Of a bias's gradient, an embedding's and flash attention's, in MiB above what is kept; as
        # measured beside the table of whole trainings, but for what is below half a MiB.
        code = ("import torch.nn.functional as F\n"
                "torch.backends.cuda.enable_cudnn_sdp(False)\n"
                "def taken(call):\n"
                "    torch.cuda.reset_peak_memory_stats()\n"
                "    made = call()\n"
                "    return torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()\n"
                "def empty(*shape):\n"
                "    return torch.empty(*shape, device='cuda', dtype=torch.bfloat16,\n"
                "                       requires_grad=True)\n"
                "rows, ids = empty(8192, 2304), torch.zeros(8192, dtype=torch.long, device='cuda')\n"
                "gradient, q = empty(8192, 768), empty(8, 12, 1024, 64)\n"
                "print(taken(lambda: rows.sum(0)))\n"
                "print(taken(lambda: rows.sum(1)))\n"
                "print(taken(lambda: torch.ops.aten.embedding_dense_backward(\n"
                "    gradient, ids, 50257, -1, False)))\n"
                "made = torch.ops.aten._scaled_dot_product_flash_attention(q, q, q, 0.0, True)\n"
                "print(taken(lambda: torch.ops.aten._scaled_dot_product_flash_attention_backward(\n"
                "    made[0], q, q, q, *made[:6], 0.0, True, *made[6:8])))\n")
        done = run_code(code)
        rows, columns, embedding, flash = (int(line) / 2**20 for line in done.stdout.split())
        self.assertAlmostEqual(rows, 132.75, delta=0.01)
        self.assertEqual(columns, 0)
        self.assertAlmostEqual(embedding, 26.8, delta=0.5)
        self.assertAlmostEqual(flash, 24.4, delta=0.1)
        smaller = int(run_code(code, "--card", "a100").stdout.split()[0]) / 2**20
        self.assertAlmostEqual(smaller, 4 * 2304 * 128 * 96 / 2**20, delta=0.01)  # of 108, not 132

    def test_a_result_that_is_given_takes_no_longer(self):
        code = ("a, b, c = torch.empty(4096, 16), torch.empty(16, 4096), torch.empty(4096, 4096)\n"
                "a, b, c = a.cuda(), b.cuda(), c.cuda()\n"
                "events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]\n"
                "events[0].record(); torch.mm(a, b); events[1].record()\n"
                "torch.mm(a, b, out=c); events[2].record(); torch.cuda.synchronize()\n"
                "print(*(events[i].elapsed_time(events[i + 1]) for i in range(2)))\n")
        made, given = map(float, run_code(code).stdout.split())
        self.assertAlmostEqual(made, given, delta=0.001)
        self.assertGreater(made, 0.01)

    def test_a_kernel_may_read_a_number_of_what_is_known(self):
        code = ("q = torch.ones(1, 2, 8, 16).cuda().requires_grad_()\n"
                "attention = torch.nn.functional.scaled_dot_product_attention\n"
                "attention(q, q, q, is_causal=True).sum().backward()\n"
                "print(q.grad.sum().item() > 0)\n")
        self.assertEqual(run_code(code).stdout, "True\n")

    def test_what_few_known_bytes_give_is_computed(self):
        code = ("positions = torch.arange(1000, device='cuda')\n"
                "given = torch.tensor([3, 0, 4]).cuda()\n"
                "print(positions.diff().sum().item(), given.nonzero().tolist())\n"
                "print(bool((given < 5).all()))\n"
                "given.mul_(2)\n"
                "print(given.cpu().numpy(), torch.zeros(4, device='cuda').tolist())\n")
        done = run_code(code)
        self.assertEqual(done.stdout, "999 [[0], [2]]\nTrue\n[6 0 8] [0.0, 0.0, 0.0, 0.0]\n",
                         done.stderr)

    def test_what_is_not_computed_is_refused_where_it_is_read(self):
        loss = "loss = torch.empty(5, device='cuda').exp().sum()\n"
        for read, named in (("loss.item()", "item"), ("loss.cpu()", "page-locked"),
                            ("float(loss) > 1", "item"), ("loss.reshape(1).nonzero()", "nonzero")):
            done = run_code(loss + read + "\n")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"(?s)line 3, in <module>.*NotImplemented.*{named}")
            self.assertIn("--no-values", done.stderr)

    def test_or_is_zero_where_that_is_asked_for(self):
        code = ("loss = torch.empty(5, device='cuda').exp().sum()\n"
                "print(loss.item(), loss.cpu(), torch.empty(7, device='cuda').tolist())\n")
        self.assertEqual(run_code(code, "--zeros").stdout,
                         "0.0 tensor(0.) [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n")
        self.assertEqual(run_code(code).returncode, 1)

    def test_what_went_to_the_host_and_back_stays_unknown(self):
        code = ("x = torch.empty(5, device='cuda').exp()\n"
                "host = torch.empty(5, pin_memory=True)\n"
                "host.copy_(x, non_blocking=True)\n"
                "back = host.cuda(non_blocking=True)\n"
                "back.sum().item()\n")
        self.assertEqual(run_code(code).returncode, 1)

    def test_a_model_that_is_made_on_the_cpu_takes_no_memory_and_no_time(self):
        code = ("import resource\n"
                "def peak():\n"
                "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
                "before = peak()\n"
                "model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(8)])\n"
                "torch.nn.init.trunc_normal_(model[0].weight, std=0.02)\n"
                "torch.nn.init.zeros_(model[1].weight)\n"
                "model = model.to(torch.bfloat16)\n"
                "torch.save(model[0].bias, '/dev/null')\n"
                "model.cuda()(torch.ones(4, 8192, dtype=torch.bfloat16, device='cuda'))\n"
                "print(peak() - before, torch.cuda.memory_allocated() >> 20)\n")
        done = run_code(code)
        self.assertEqual(done.returncode, 0, done.stderr)
        resident, allocated = map(int, done.stdout.split())  # in MiB; the model has 2 GiB, then 1
        self.assertGreaterEqual(allocated, 1024)
        self.assertLess(resident, 256)

    def test_what_depends_on_what_was_not_filled_is_refused_where_it_is_read(self):
        code = ("w, small = torch.randn(1024, 1024), torch.randn(8)\n"
                "unknown = (lambda: w[0, 0].item(), lambda: w.abs().max().item(),\n"
                "           lambda: bool((w > 0).any()),\n"
                "           lambda: w.to(torch.bfloat16).sum().item(),\n"
                "           lambda: w[0].cuda().sum().item(),\n"
                "           lambda: w[0].pin_memory().cuda().sum().item())\n"
                "known = (lambda: small.sum().item(), lambda: small.cuda().sum().item(),\n"
                "         lambda: torch.randint(9, (1 << 20,)).sum().item(),\n"
                "         lambda: torch.arange(1 << 10).cuda()[3].item())\n"
                "refused = 0\n"
                "for read in unknown + known:\n"
                "    try:\n"
                "        read()\n"
                "    except NotImplementedError as error:\n"
                "        refused += read in unknown and '--no-values' in str(error)\n"
                "        assert read in unknown, error\n"
                "print(refused, 'of', len(unknown))\n")
        done = run_code(code)
        self.assertEqual(done.stdout, "6 of 6\n", done.stderr)

    def test_a_race_is_found_as_it_is_with_values(self):
        done = run("--zeros", PROGRAMS / "double_buffer.py", "--no-load")
        self.assertEqual(done.returncode, 1)
        self.assertIn("double_buffer.py", done.stderr)

    def test_zeros_alone_make_no_sense(self):
        done = subprocess.run([FERRY, "run", "--zeros", __file__], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--no-values", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
