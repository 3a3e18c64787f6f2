"""Activation offloading on the virtual GPU: Ferry's own in Python, and TRL's as others wrote it.

    offload_test.py FERRY PYTHON PACKAGE
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON, PACKAGE = sys.argv[1:4]
PROGRAMS = pathlib.Path(__file__).parent / "programs"
# Of the lines of TRL 1.16 that wait: what is kept of forward, the copy out, the copy back, what is
# kept of backward. The other two order what these order already, here.
NEEDED = (0, 1, 3, 5)


def run(*words, **variables):
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=PACKAGE, **variables)
    command = [FERRY, "run", "--python", PYTHON, "--hide-gpu", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


class Offloading(unittest.TestCase):
    def test_ferrys_own_gives_the_cpus_gradients_and_is_clean(self):
        for schedule in ("--side-first", "--main-first"):
            done = run(schedule, PROGRAMS / "offload.py")
            self.assertEqual((done.returncode, done.stdout), (0, "True " * 6), done.stderr)
            self.assertIn("0 violations", done.stderr)

    def test_an_optimizer_on_the_host_has_the_plain_ones_bits_and_is_clean(self):
        for schedule in ("--side-first", "--main-first"):
            done = run(schedule, PROGRAMS / "host_optimizer.py")
            self.assertEqual((done.returncode, done.stdout), (0, "True " * 7), done.stderr)
            self.assertIn("0 violations", done.stderr)

    def test_weights_on_the_host_give_the_plain_models_bits_and_are_clean(self):
        for schedule in ("--side-first", "--main-first"):
            done = run(schedule, PROGRAMS / "stream_weights.py")
            self.assertEqual((done.returncode, done.stdout), (0, "True " * 4), done.stderr)
            self.assertIn("0 violations", done.stderr)

    def test_statistics_say_what_memory_was_saved(self):
        kept, moved = (run(PROGRAMS / "offload_memory.py", how, CUBLAS_WORKSPACE_CONFIG=":16:8")
                       for how in ("keep", "offload"))
        self.assertEqual((0, 0), (kept.returncode, moved.returncode), kept.stderr + moved.stderr)
        keeps, (peak, seen, without) = int(kept.stdout), map(int, moved.stdout.split())
        self.assertEqual(peak, seen)
        self.assertLess(peak, keeps * 0.9)
        self.assertLess(keeps * 0.9, without)  # it looked at some moments, and not at all
        self.assertLess(without, keeps * 1.01)

    def test_a_plan_for_other_options_of_the_allocator_says_so_once(self):
        planned, told = "expandable_segments:True", "the plan is for PYTORCH_CUDA_ALLOC_CONF="
        for conf, times in (("max_split_size_mb:256", 1), (planned, 0), ("", 1)):
            done = run(PROGRAMS / "offload_plan.py", planned, PYTORCH_CUDA_ALLOC_CONF=conf)
            self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)
            self.assertEqual(done.stderr.count(told + planned), times, done.stderr)

    def test_a_plan_of_attention_is_one_of_the_cards_kernel(self):
        program = PROGRAMS / "attention_plan.py"
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "attention.plan")
            for card, other, kernel in (("rtx4090", "h100", "Flash"), ("h100", "a100", "Cudnn")):
                subprocess.run([PYTHON, program, "plan", card, plan], check=True,
                               env=dict(os.environ, PYTHONPATH=PACKAGE))
                self.assertIn(f"ScaledDotProduct{kernel}AttentionBackward0", plan.read_text())
                done = run("--card", card, program, "run", plan)
                self.assertEqual((done.returncode, done.stdout), (0, "True True\n"), done.stderr)
                self.assertIn("0 violations", done.stderr)
                done = run("--card", other, program, "run", plan)
                self.assertEqual(done.returncode, 1)
                self.assertIn("PlanMismatch", done.stderr)


class Trl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if subprocess.run([PYTHON, "-c", "import trl"], capture_output=True).returncode:
            raise unittest.SkipTest("no trl")

    def test_as_it_is(self):
        for schedule in ("--side-first", "--main-first"):
            done = run(schedule, PROGRAMS / "trl_offload.py")
            self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)

    def test_each_wait_that_it_needs_is_missed(self):
        for line in NEEDED:
            done = run("--eager", PROGRAMS / "trl_offload.py", "--without", line)
            self.assertEqual((done.returncode, done.stdout), (1, "True\n"), done.stderr)
            self.assertIn("activation_offloading.py:", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
