"""Runs Triton kernels under `ferry run` (vgpu/triton).

Triton has a registry of backends, each with a compiler and a driver. This file puts its own two in
the place of NVIDIA's. So compilation, autotuning, heuristics, hooks and caches stay Triton's:

    Compiler    NVIDIA's, up to TTIR, which the virtual GPU executes, and up to the pass that says
                how much shared memory the kernel needs on the card; no PTX and no cubin is made
    Driver      PyTorch's current device and stream; launches go to the virtual GPU. Autotuning and
                triton.testing.do_bench take the card's simulated time (ferry_rehearsal.py)

Not covered: Gluon; registers, of which each kernel is said to need 32 a thread.
"""

import ctypes
import importlib.metadata
import os
import struct
import tempfile

import torch

SUPPORTED = ("3.9",)  # TTIR changes from version to version
NO_GLUON = "CUDA error: operation not supported: the virtual GPU does not run Gluon's kernels"


def version():
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


def is_supported():
    return ".".join(version().split(".")[:2]) in SUPPORTED


class Library:
    """The functions of vgpu/python/triton_entries.cpp."""

    def __init__(self, library, note_refusal):
        self._note_refusal = note_refusal
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._load = library.ferry_vgpu_triton_load
        self._load.restype, self._load.argtypes = pointer, [ctypes.c_char_p, ctypes.c_char_p]
        self._error = library.ferry_vgpu_triton_error
        self._error.restype = ctypes.c_char_p
        self._launch = library.ferry_vgpu_triton_launch
        self._launch.restype = ctypes.c_char_p
        self._launch.argtypes = [pointer, pointer, pointer, size, pointer, size, pointer]

    def load(self, name, ttir):
        kernel = self._load(ttir, name.encode())
        if not kernel:
            self._note_refusal(f"{name}, of Triton")
            raise NotImplementedError(
                f"CUDA error: operation not supported: {self._error().decode()}")
        return kernel

    def launch(self, kernel, grid, arguments, memory, stream):
        """`arguments` are 64 bits each. `memory` has the bytes of each storage by its address."""
        flat = [number for storage in sorted(memory.items()) for number in storage]
        error = self._launch(kernel, (ctypes.c_int64 * 3)(*grid),
                             (ctypes.c_uint64 * len(arguments))(*arguments), len(arguments),
                             (ctypes.c_uint64 * len(flat))(*flat), len(memory), stream)
        if error:
            raise RuntimeError(f"CUDA error: {error.decode()}")


class Arguments:
    """Flattens the arguments of launches as the kernel's function in TTIR has them: an address, a
    whole number or the bits of a double for each, without the constants.
    """

    def __init__(self, signature, constants):
        self._signature = list(signature)
        self._constants = constants  # positions, as tuples

    def flatten(self, arguments):
        numbers, memory = [], {}
        for i, (kind, value) in enumerate(zip(self._signature, arguments)):
            self._add(kind, value, (i,), numbers, memory)
        return numbers, memory

    def _add(self, kind, value, path, numbers, memory):
        if isinstance(kind, tuple):
            for i, (inner, each) in enumerate(zip(kind, value)):
                self._add(inner, each, path + (i,), numbers, memory)
        elif kind == "constexpr" or path in self._constants:
            return
        elif kind.startswith("tensordesc"):
            self._add_descriptor(value, numbers, memory)
        elif kind.startswith("*"):
            self._add_pointer(value, numbers, memory)
        elif kind in ("fp16", "bf16", "fp32", "f32", "fp64"):
            numbers.append(struct.unpack("<Q", struct.pack("<d", value))[0])
        else:
            numbers.append(int(value) & 0xFFFFFFFFFFFFFFFF)

    def _add_descriptor(self, value, numbers, memory):
        from triton.backends.driver import decompose_descriptor
        base, *others = decompose_descriptor(value)
        self._add_pointer(base, numbers, memory)
        numbers.extend(int(other) & 0xFFFFFFFFFFFFFFFF for other in others)

    @staticmethod
    def _add_pointer(value, numbers, memory):
        if not hasattr(value, "data_ptr"):
            numbers.append(int(value or 0))
            return
        numbers.append(value.data_ptr())
        tensor = value if isinstance(value, torch.Tensor) else getattr(value, "base", None)
        if isinstance(tensor, torch.Tensor):
            if not tensor.is_cuda:  # page-locked memory as well, whose host accesses are judged
                raise ValueError(f"Pointer argument (at {len(numbers) - 1}) cannot be accessed "
                                 "from Triton (cpu tensor?)")
            storage = tensor.untyped_storage()
            if storage.nbytes() > 0:
                address = storage.data_ptr()
                memory[address] = max(storage.nbytes(), memory.get(address, 0))


def make_launcher(library):
    class Launcher:
        def __init__(self, source, metadata):
            names = getattr(getattr(source, "fn", None), "arg_names", [])
            constants = {(names.index(key),) if isinstance(key, str) else key
                         for key in getattr(source, "constants", {})}
            self._arguments = Arguments(source.signature.values(), constants)

        def __call__(self, x, y, z, stream, function, packed, metadata, enter, leave, *arguments):
            if enter is not None:
                enter(metadata)
            numbers, memory = self._arguments.flatten(arguments)
            library.launch(function, (x, y, z), numbers, memory, stream)
            if leave is not None:
                leave(metadata)

    return Launcher


class Utils:
    """What Triton asks its driver about a device, and to load what it compiled."""

    def __init__(self, library):
        self._library = library

    def load_binary(self, name, ttir, shared, device):
        registers, spills, most_threads = 32, 0, 1024
        return object(), self._library.load(name, ttir), registers, spills, most_threads

    def unload_module(self, module):
        pass

    def get_device_properties(self, device):
        card = torch.cuda.get_device_properties(device)
        return {"max_shared_mem": card.shared_memory_per_block_optin,
                "max_num_regs": card.regs_per_multiprocessor,
                "multiprocessor_count": card.multi_processor_count, "warpSize": 32,
                "sm_clock_rate": 1_500_000, "mem_clock_rate": 1_500_000, "mem_bus_width": 4096}


def make_driver(library, rehearsal):
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import GPUDriver

    class Driver(GPUDriver):
        def __init__(self):
            super().__init__()
            self.utils = Utils(library)
            self.launcher_cls = make_launcher(library)

        @staticmethod
        def is_active():
            return True

        def get_current_target(self):
            major, minor = self.get_device_capability(self.get_current_device())
            return GPUTarget("cuda", 10 * major + minor, 32)

        def get_active_torch_device(self):
            return torch.device("cuda", self.get_current_device())

        def get_device_interface(self):
            return torch.cuda

        def map_python_to_cpp_type(self, kind):
            from triton.backends.nvidia.driver import ty_to_cpp
            return ty_to_cpp(kind)

        def get_benchmarker(self):
            return make_benchmark(rehearsal)

        def get_empty_cache_for_benchmark(self):
            return torch.empty(0, dtype=torch.int, device="cuda")

        def clear_cache(self, cache):
            pass

    return Driver


def without_descriptors(ttir, context):
    """Tensor descriptors become pointers, as for cards that have no hardware for them."""
    from triton._C.libtriton import ir, passes
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ttir")
        with open(path, "w") as file:
            file.write(ttir)
        module = ir.parse_mlir_module(path, context)
    module.context = context
    manager = ir.pass_manager(context)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    manager.run(module, "without_descriptors")
    return str(module)


def shared_bytes(module, options, capability):
    """Returns the shared memory that the card would need. Changes the module."""
    from triton._C.libtriton import ir, nvidia, passes
    from triton.backends.nvidia.compiler import get_ptx_version_from_options
    version = get_ptx_version_from_options(options, capability)
    manager = ir.pass_manager(module.context)
    passes.ttgpuir.add_combine_tensor_select_and_if(manager)
    passes.ttgpuir.add_allocate_warp_groups(manager, False)
    passes.convert.add_scf_to_cf(manager)
    passes.gluon.add_inliner(manager)
    nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, capability, version)
    manager.run(module, "shared_bytes")
    return module.get_int_attr("ttg.shared") or 0


def make_compiler(nvidias):
    from triton.backends.compiler import Language

    class Compiler(nvidias):
        def __init__(self, target):
            super().__init__(target)
            self.binary_ext = "ttir"

        def add_stages(self, stages, options, language):
            if language != Language.TRITON:
                raise NotImplementedError(NO_GLUON)

            def make(module, metadata):
                ttir = nvidias.make_ttir(module, metadata, options, self.target.arch)
                text = str(ttir)
                if "tensordesc" in text:
                    text = without_descriptors(text, ttir.context)
                metadata["name"] = ttir.get_entry_func_name()
                lowered = self.make_ttgir(ttir, metadata, options, self.target.arch)
                metadata["shared"] = shared_bytes(lowered, options, self.target.arch)
                return text
            stages["ttir"] = make

        def hash(self):
            return f"ferry-ttir-{self.target.arch}"

    return Compiler


def make_benchmark(rehearsal):
    """Returns a function in the place of triton.testing.do_bench: one call, by simulated time."""
    def bench(call, warmup=None, rep=None, grad_to_none=None, quantiles=None, return_mode="mean"):
        milliseconds = rehearsal.milliseconds(call)
        if quantiles:
            return [milliseconds] * len(quantiles)
        return [milliseconds] if return_mode == "all" else milliseconds
    return bench


class Triton:
    """Changes Triton's modules, when they are imported (ferry_compilers.py)."""

    def __init__(self, library, note_refusal, rehearsal):
        self._library = Library(library, note_refusal)
        self._rehearsal = rehearsal

    def changes(self):
        return {"triton.backends": self._register, "triton.testing": self._benchmark}

    def _register(self, module):
        nvidia = module.backends["nvidia"]
        module.backends.clear()  # none other has a device
        module.backends["nvidia"] = module.Backend(make_compiler(nvidia.compiler),
                                                   make_driver(self._library, self._rehearsal))

    def _benchmark(self, module):
        module.do_bench = make_benchmark(self._rehearsal)
