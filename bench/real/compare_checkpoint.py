"""What a checkpoint costs the host, C++ beside Python, in one run.

    python compare_checkpoint.py TORCH_CHECKPOINT_BENCH

runs the benchmark program given and the same chain of segments here, under
torch.utils.checkpoint. Needs the torch of the environment that LibTorch came from. Prints
nanoseconds per segment over the chain without checkpoints.
"""

import sys
import time

import torch
from torch.utils.checkpoint import checkpoint

from best_rows import best_rows

LENGTH = 1000
ELEMENTS = 16


def chain_ns(segment):
    leaf = torch.randn(ELEMENTS, requires_grad=True)
    ones = torch.ones(ELEMENTS)
    best = float("inf")
    for _ in range(10):
        begin = time.perf_counter_ns()
        x = leaf
        for _ in range(LENGTH):
            x = segment(x)
        x.backward(ones)
        best = min(best, (time.perf_counter_ns() - begin) / LENGTH)
    return best


def python_rows():
    torch.set_num_threads(1)

    def with_options(**options):
        return lambda x: checkpoint(torch.sin, x, **options)

    plain = chain_ns(torch.sin)
    return {
        "checkpoint": chain_ns(with_options(use_reentrant=False)) - plain,
        "no_rng": chain_ns(with_options(use_reentrant=False, preserve_rng_state=False)) - plain,
        "reentrant": chain_ns(with_options(use_reentrant=True)) - plain,
    }


def cpp_rows(program):
    best = best_rows(program, "per_segment_ns")
    return {name: ns - best["plain"] for name, ns in best.items() if name != "plain"}


def main():
    python, cpp = python_rows(), cpp_rows(sys.argv[1])
    for name, ns in cpp.items():
        print(f"{name:12} C++ {ns:8.0f} ns   Python {python[name]:8.0f} ns   "
              f"Python / C++ {python[name] / ns:5.1f}")


if __name__ == "__main__":
    main()
