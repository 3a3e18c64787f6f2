"""What recomputing costs the host, C++ beside Python, in one run.

    python compare_checkpoint.py TORCH_CHECKPOINT_BENCH RECOMPUTE_BENCH

runs the two benchmark programs and the same chains here, under torch.utils.checkpoint. Needs the
torch of the environment that LibTorch came from. Prints nanoseconds per segment over the chain
without checkpoints; then nanoseconds per op of a chain that is recomputed as one, over the chain
and its ops run once more.
"""

import functools
import sys
import time

import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from best_rows import best_rows

LENGTH = 1000
ELEMENTS = 16


def chain(x, segment=torch.sin):
    for _ in range(LENGTH):
        x = segment(x)
    return x


def chain_ns(run):
    leaf = torch.randn(ELEMENTS, requires_grad=True)
    ones = torch.ones(ELEMENTS)
    best = float("inf")
    for _ in range(10):
        begin = time.perf_counter_ns()
        x = run(leaf)
        if x.requires_grad:
            x.backward(ones)
        best = min(best, (time.perf_counter_ns() - begin) / LENGTH)
    return best


def segments():
    def with_options(**options):
        def segment(x):
            return checkpoint(torch.sin, x, **options)
        return lambda leaf: chain(leaf, segment)

    plain = chain_ns(chain)
    return {
        "checkpoint": chain_ns(with_options(use_reentrant=False)) - plain,
        "no_rng": chain_ns(with_options(use_reentrant=False, preserve_rng_state=False)) - plain,
        "reentrant": chain_ns(with_options(use_reentrant=True)) - plain,
    }


def operators():
    keep = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    bare = chain_ns(chain) + chain_ns(torch.no_grad()(chain))
    return {
        "checkpoint": chain_ns(lambda x: checkpoint(chain, x, use_reentrant=False)) - bare,
        "selective": chain_ns(
            lambda x: checkpoint(chain, x, use_reentrant=False, context_fn=keep)) - bare,
    }


def over(best, *bare):
    beneath = sum(best[name] for name in bare)
    return {name: ns - beneath for name, ns in best.items() if name not in bare}


def show(cpp, python):
    for name, ns in cpp.items():
        theirs = python.get(name)
        beside = "" if theirs is None else f"   Python {theirs:8.0f} ns   ratio {theirs / ns:5.1f}"
        print(f"{name:12} C++ {ns:8.0f} ns{beside}")


def main():
    torch.set_num_threads(1)
    checkpoints, recomputes = sys.argv[1:]
    print("a segment:")
    show(over(best_rows(checkpoints, "per_segment_ns"), "plain"), segments())
    print("an op:")
    show(over(best_rows(recomputes, "per_op_ns"), "plain", "again"), operators())


if __name__ == "__main__":
    main()
