"""Runs a script on the virtual GPU.

`ferry run` starts Python with this file, and with Ferry's CUDA runtime preloaded. This file imports
PyTorch, installs the operators, and then runs the script.

    launch.py SCRIPT|-m MODULE|-c CODE ARGS…

$FERRY_VIRTUAL_GPU has the settings of `ferry run`, as JSON. While the script runs, it can import a
module `ferry_virtual_gpu`. The module's `parts` cut the run into parts that are judged separately
(pytest_ferry), and its `stand_in` gives values to an operator (torch_ferry.virtual).
"""

import ctypes
import json
import os
import pathlib
import runpy
import sys
import types

RESOURCE_MISSING = 7
REFUSED = 1  # ComputedValues::kRefused of vgpu/run/options.h: --no-values


def refuse(why):
    print(f"ferry run: {why}", file=sys.stderr)
    sys.exit(RESOURCE_MISSING)


def library_for_torch():
    """Returns PyTorch, and the library of operators that was built for its version."""
    here = pathlib.Path(__file__).parent
    versions = [folder.name.removeprefix("torch-") for folder in here.glob("torch-*")]
    versions.sort(key=lambda version: [int(number) for number in version.split(".")])
    known = " or ".join(filter(None, [", ".join(versions[:-1]), *versions[-1:]]))
    try:
        import torch
    except ImportError as error:
        refuse(f"{sys.executable}: {error}: give --python an interpreter that has PyTorch {known}")
    minor = ".".join(torch.__version__.split(".")[:2])
    if minor not in versions:
        refuse(f"{sys.executable} has PyTorch {torch.__version__}, and this Ferry was built for "
               f"{known}")
    if torch.version.cuda is None:
        refuse(f"PyTorch {torch.__version__} was built without CUDA: install a build with CUDA")
    return torch, ctypes.CDLL(str(here / f"torch-{minor}" / "libferry_vgpu_python.so"))


def no_nvml(*_, **__):
    raise RuntimeError("the virtual GPU has no NVML: its load, its temperature, its power and its "
                       "clocks are not simulated")


def start(settings):
    torch, library = library_for_torch()
    library.ferry_vgpu_start.restype = library.ferry_vgpu_finish.restype = ctypes.c_char_p
    library.ferry_vgpu_start.argtypes = [ctypes.c_char_p]
    library.ferry_vgpu_finish.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.ferry_vgpu_end_step.restype = library.ferry_vgpu_note_asking.restype = None
    library.ferry_vgpu_note_refusal.restype = None
    library.ferry_vgpu_note_refusal.argtypes = [ctypes.c_char_p]
    for name in ("note_place", "begin_backward", "end_backward"):
        getattr(library, "ferry_vgpu_" + name).restype = None
    error = library.ferry_vgpu_start(json.dumps(settings).encode())
    if error:
        refuse(error.decode())
    torch.cuda._get_pynvml_handler = torch.cuda.memory.list_gpu_processes = no_nvml
    torch.cuda.list_gpu_processes = no_nvml
    # cuDNN computes no recurrent networks here, so their weights stay separate tensors.
    torch._use_cudnn_rnn_flatten_weight = lambda: False
    from torch.optim.optimizer import register_optimizer_step_post_hook
    register_optimizer_step_post_hook(lambda *_: library.ferry_vgpu_end_step())
    # These are in this file's folder, which the script's folder will replace in sys.path.
    import ferry_bitsandbytes
    import ferry_compilers
    import ferry_draws
    import ferry_endings
    import ferry_extensions
    import ferry_flash_attention
    import ferry_places
    import ferry_policies
    import ferry_views
    compilers = ferry_compilers.Compilers(
        library, lambda name: library.ferry_vgpu_note_refusal(name.encode()), settings)
    compilers.install()
    ferry_extensions.watch(library)
    stand_in = ferry_extensions.StandIns(library)
    sys.meta_path.insert(0, ferry_bitsandbytes.Bitsandbytes(stand_in))
    sys.meta_path.insert(0, ferry_flash_attention.FlashAttention(
        stand_in, lambda name: library.ferry_vgpu_note_refusal(name.encode()),
        has_values=settings["values"] == 0))
    ferry_views.watch(library)
    if settings["values"] == REFUSED:
        ferry_draws.like_the_first()
    ferry_places.find(library)
    ferry_endings.note_forked_children(library)
    try:
        ferry_policies.apply(settings["policy"], settings["packages"])
    except (ImportError, ValueError, OSError) as error:
        refuse(f"--policy {settings['policy']}: {error}")
    return library, compilers, stand_in


class Parts:
    """Cuts a run into parts, each with a log of its own."""

    def __init__(self, library):
        library.ferry_vgpu_begin.restype = library.ferry_vgpu_judge.restype = ctypes.c_char_p
        library.ferry_vgpu_begin.argtypes = [ctypes.c_char_p]
        self._library = library

    def begin(self, log):
        """Waits for all work, and lets the log know it; what follows goes to this file."""
        error = self._library.ferry_vgpu_begin(os.fsencode(log))
        if error:
            raise RuntimeError(error.decode())

    def judge(self):
        """Returns the verdict on this part so far, in the form of `ferry check --json`."""
        verdict = json.loads(self._library.ferry_vgpu_judge().decode())
        if "error" in verdict:
            raise RuntimeError(verdict["error"])
        return verdict

    def asking(self):
        """Returns how many child processes have asked for a device so far. None of them has one."""
        with open(os.environ["FERRY_VIRTUAL_GPU_ASKING"]) as lines:
            return len(set(lines))


def run():
    """Runs what the command line names, as Python itself would run it."""
    first = sys.argv[1]
    if first == "-m":
        sys.argv[:] = sys.argv[2:]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        code = compile(sys.argv[2], "<string>", "exec")
        sys.argv[:] = ["-c", *sys.argv[3:]]
        sys.path[0] = ""
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(code, module.__dict__)
    else:
        del sys.argv[0]
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


def record_memory(path):
    """Records the history of PyTorch's allocator. The returned function writes a snapshot of it."""
    from torch.cuda import memory
    memory._record_memory_history(stacks="python")

    def write():
        # The file appears as a whole: a reader that waits for it gets all of it.
        unfinished = f"{path}.{os.getpid()}"
        memory._dump_snapshot(unfinished)
        os.replace(unfinished, path)

    return write


def main():
    settings = json.loads(os.environ["FERRY_VIRTUAL_GPU"])
    library, compilers, stand_in = start(settings)
    write_snapshot = record_memory(settings["snapshot"]) if settings["snapshot"] else None
    sys.modules["ferry_virtual_gpu"] = types.ModuleType("ferry_virtual_gpu")
    sys.modules["ferry_virtual_gpu"].parts = Parts(library)
    sys.modules["ferry_virtual_gpu"].stand_in = stand_in
    out_of_memory = ""
    try:
        run()
    except sys.modules["torch"].OutOfMemoryError as error:
        out_of_memory = str(error)
        raise
    finally:
        sys.modules["ferry_endings"].hide_launcher()
        if write_snapshot:
            write_snapshot()
        if compilers.said():
            print(f"ferry run: {compilers.said()}", file=sys.stderr)
        error = library.ferry_vgpu_finish(settings["summary"].encode(), out_of_memory.encode())
        if error:
            print(f"ferry run: {error.decode()}", file=sys.stderr)


main()
