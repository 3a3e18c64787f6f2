"""What saving a tensor costs the thread that trains, over no hooks: Ferry and others, in one run.

    PYTHONPATH=build/release/python python compare_hooks.py HOOKS_BENCH

runs the benchmark program given, which is C++, and here the same chain of ops under hooks of a
Python process: Ferry's, an identity pair, save_on_cpu, and TRL's class, where torch_ferry and trl
can be imported. Each op saves one tensor, of 64 bytes (Ferry and TRL keep it) or of 4 KiB (they
move it; save_on_cpu moves nothing on a CPU).

A busy machine only ever adds time. So the variants run in turns, the calling thread's CPU time
counts, and of each variant the least of many rounds is taken before the least of the rounds without
hooks is taken off. What worker threads do meanwhile is not in it.
"""

import contextlib
import sys
import time
from unittest import mock

import torch

from best_rows import middle_rows

LENGTH = 1000
ROUNDS = 60
SIZES = {"small": 16, "large": 1024}  # floats


def identity():
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


def variants():
    """Contexts of Python's, each entered anew in each round."""
    found = {"none": contextlib.nullcontext, "python_identity": identity,
             "python_save_on_cpu": torch.autograd.graph.save_on_cpu}
    with contextlib.suppress(ImportError):
        import torch_ferry as ferry
        if hasattr(ferry, "offload"):
            found["python_ferry"] = always(ferry.offload())
            found["python_ferry_no_window"] = always(ferry.offload(window=0, prefetch=0, hold=0))
    with contextlib.suppress(ImportError):
        from trl.models.activation_offloading import OffloadActivations
        # It asks for an accelerator, and is told that the CPU is one.
        with mock.patch.object(torch.accelerator, "current_accelerator",
                               lambda: torch.device("cpu")):
            found["python_trl"] = always(OffloadActivations(use_pin_memory=False,
                                                            use_streams=False))
    return found


def always(context):
    return lambda: context


def chain_ns(leaf, ones, context):
    begin = time.thread_time_ns()
    with context():
        x = leaf
        for _ in range(LENGTH):
            x = x.sin()
    x.backward(ones)
    return (time.thread_time_ns() - begin) / LENGTH


def python_rows():
    torch.set_num_threads(1)
    found, rows = variants(), {}
    for size, elements in SIZES.items():
        leaf, ones = torch.randn(elements, requires_grad=True), torch.ones(elements)
        least = dict.fromkeys(found, float("inf"))
        for _ in range(ROUNDS):
            for name, context in found.items():
                least[name] = min(least[name], chain_ns(leaf, ones, context))
        rows |= {f"{size}_{name}": ns - least["none"] for name, ns in least.items()
                 if name != "none"}
    return rows


def main():
    rows = {**middle_rows(sys.argv[1], "over_ns"), **python_rows()}
    for name, ns in sorted(rows.items()):
        print(f"{name:28} {ns:9.0f} ns")
    for over, under in (("small_python_identity", "small_kept"),
                        ("small_python_identity", "small_python_ferry"),
                        ("large_python_trl", "large_python_ferry_no_window"),
                        ("large_python_trl", "large_python_ferry")):
        if over in rows and under in rows:
            print(f"{over} / {under}: {rows[over] / rows[under]:.2f}")


if __name__ == "__main__":
    main()
