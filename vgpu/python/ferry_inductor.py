"""Lets Inductor, the compiler of torch.compile, work for the virtual GPU.

What it compiles stays Inductor's: the graphs, the fusions, the buffers that it reuses, what forward
saves. Its Triton kernels run as all others do (ferry_triton.py). Only these differ:

    compile workers     Triton compiles in this process, because a worker has no device
    kernel launches     go by Triton's driver, not by Inductor's own launcher, which loads a cubin
    benchmarks          take the card's simulated time, and leave nothing in the log. Kernels that
                        differ in their block sizes alone take equally long; then the first one wins
    rates of the card   are those in its file; Inductor's own table has no such card
    large CPU tensors   of activation_memory_budget are filled, also if no values are computed
"""

import ctypes
import functools


class Inductor:
    """Changes Inductor's modules, when they are imported (ferry_compilers.py)."""

    def __init__(self, library, rehearsal, settings):
        self._fill_all = library.ferry_vgpu_fill_all
        self._fill_all.restype, self._fill_all.argtypes = None, [ctypes.c_bool]
        self._rehearsal = rehearsal
        self._flops_per_us = settings["flops_per_us"]
        self._gb_per_s = settings["memory_bytes_per_us"] / 1000

    def changes(self):
        return {"torch._inductor.async_compile": self._compile_here,
                "torch._functorch._activation_checkpointing.knapsack": self._fill,
                "torch._inductor.utils": self._rate,
                "torch._inductor.runtime.triton_heuristics": self._launch_by_triton,
                "torch._inductor.runtime.benchmarking": self._benchmark}

    @staticmethod
    def _compile_here(module):
        module.get_compile_threads = lambda: 1

    @staticmethod
    def _launch_by_triton(module):
        module.StaticTritonCompileResult.can_statically_launch = staticmethod(lambda *_, **__: None)
        # A benchmark writes nothing, so what a kernel changes needs no copy.
        autotuner = module.CachingAutotuner
        autotuner.copy_args_to_cpu_if_needed = lambda *_, **__: {}
        autotuner.maybe_clone_args = lambda _, exclude, *args, **kwargs: (list(args), kwargs)

    def _fill(self, module):
        def filling(solve):
            @functools.wraps(solve)
            def call(*arguments, **named):
                self._fill_all(True)
                try:
                    return solve(*arguments, **named)
                finally:
                    self._fill_all(False)
            return call
        for name in ("dp_knapsack", "dp_knapsack_sliding_hirschberg"):
            setattr(module, name, filling(getattr(module, name)))

    def _rate(self, module):
        def tflops(dtype, *_):
            kind = "single" if dtype.itemsize > 2 else "half"
            return self._flops_per_us[kind] / 1e6
        module._get_device_tflops = tflops
        module._get_device_dram_gbps = module.get_gpu_dram_gbps = lambda *_: self._gb_per_s

    def _benchmark(self, module):
        def benchmark_gpu(_, call, *__, return_mode="min", **___):
            milliseconds = self._rehearsal.milliseconds(call)
            return [milliseconds] if return_mode == "all" else milliseconds
        for name in ("Benchmarker", "TritonBenchmarker", "InductorBenchmarker"):
            benchmarker = getattr(module, name)
            benchmarker.benchmark_gpu = benchmark_gpu
            benchmarker.benchmark_gpu_with_cuda_graph = benchmark_gpu
