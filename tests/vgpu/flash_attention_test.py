"""Scripts that import flash-attn 2's compiled module, under `ferry run`.

    flash_attention_test.py FERRY PYTHON
"""

import os
import pathlib
import subprocess
import sys
import unittest

FERRY, PYTHON = sys.argv[1:3]
PROGRAM = pathlib.Path(__file__).parent / "programs" / "flash_attention.py"


def run(*options, words=()):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    command = [FERRY, "run", "--python", PYTHON, "--hide-gpu", *options, PROGRAM, *words]
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
