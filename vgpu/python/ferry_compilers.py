"""Lets compilers work for the virtual GPU under `ferry run`, as far as it runs what they make.

    Triton          its kernels run (ferry_triton.py)
    torch.compile   compiles as it does for a GPU (ferry_inductor.py)
    TorchScript     fuses nothing for a GPU: scripted code runs operator by operator

With a version of Triton that ferry_triton.py does not support:

    Triton          a launch fails with an error that names the kernel
    torch.compile   with the backends "inductor" and "cudagraphs", functions and modules run as
                    they are written, and the end of the run counts them. Other backends, and a
                    callable of the script's own, make no kernels and stay as they are
    torch._inductor fails with an error when it is called directly, to make a file for example

Dynamo, Inductor and Triton are imported late, if at all, because that takes long. Each is changed
when it is imported.
"""

import importlib.abc
import importlib.machinery
import os
import sys

import ferry_inductor
import ferry_rehearsal
import ferry_triton
import torch

REFUSAL = "CUDA error: operation not supported: the virtual GPU does not run compiled kernels"


class Changing(importlib.abc.Loader):
    """Loads a module, and changes it before anybody sees it."""

    def __init__(self, loader, change):
        self._loader, self._change = loader, change

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        self._change(module)


class Late:
    """An import finder for the modules that must be changed."""

    def __init__(self, changes):
        self._changes = changes

    def find_spec(self, name, path=None, target=None):
        if name not in self._changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = Changing(spec.loader, self._changes[name])
        return spec


class Compilers:
    """Changes the compilers. `note_refusal` is called with the name of each rejected kernel."""

    def __init__(self, library, note_refusal, settings):
        self._note_refusal = note_refusal
        rehearsal = ferry_rehearsal.Rehearsal(library)
        self._runs = (ferry_triton.Triton(library, note_refusal, rehearsal).changes()
                      | ferry_inductor.Inductor(library, rehearsal, settings).changes())
        self._process = os.getpid()  # a forked child's end is not the end of the run
        self._as_written = 0

    def install(self):
        changes = self._runs if ferry_triton.is_supported() else {
            "torch._dynamo.eval_frame": self._run_as_written,
            "torch._inductor.compile_fx": self._refuse_inductor,
            "triton.runtime.autotuner": self._refuse_launches("Autotuner"),
            "triton.runtime.jit": self._refuse_launches("JITFunction")}
        for name in changes.keys() & sys.modules.keys():
            changes[name](sys.modules[name])
        sys.meta_path.insert(0, Late(changes))
        # A script that requests the fuser itself (torch.jit.fuser) does not get it either.
        torch._C._jit_override_can_fuse_on_gpu(False)
        torch._C._jit_override_can_fuse_on_gpu = lambda wanted: False

    def said(self):
        """Returns a line for the end of the run, or "" if there is nothing to report."""
        if self._as_written == 0 or os.getpid() != self._process:
            return ""
        functions = "1 function" if self._as_written == 1 else f"{self._as_written} functions"
        return f"torch.compile: {functions} ran as written: compiled kernels are not run here"

    def _run_as_written(self, frames):
        """At each call of what torch.compile returned, Dynamo asks this function who compiles it.
        The answer here is nobody, so the functions of the script are not traced either."""
        compiler_of = frames._callback_from_stance
        # Exists since 2.12, where fullgraph=True uses it to check that something was compiled.
        set_count = getattr(frames, "set_fullgraph_compiled_frame_count", None)

        def nobody_compiles(callback):
            found = compiler_of(callback)
            if frames.config.disable or not callable(found):
                return found
            if not makes_kernels(frames.innermost_backend(found)):
                return found
            if not hasattr(callback, "_ferry_was_called"):
                callback._ferry_was_called = True
                self._as_written += 1
            if set_count is not None:
                set_count(-1)  # nothing was compiled, and that is no error
            return None

        frames._callback_from_stance = nobody_compiles

    def _refuse_inductor(self, module):
        def refuse(*_, **__):
            self._refuse("torch._inductor")
        module.compile_fx = module.compile_fx_inner = refuse

    def _refuse_launches(self, launcher):
        def run(kernel, *_, **__):
            function = getattr(kernel, "base_fn", kernel.fn)
            self._refuse(f"{function.__name__}, of Triton {ferry_triton.version()}")

        def change(module):
            getattr(module, launcher).run = run
        return change

    def _refuse(self, name):
        self._note_refusal(name)
        raise NotImplementedError(f"{REFUSAL} ({name})")


def makes_kernels(backend):
    from torch._dynamo.backends.registry import lookup_backend
    backend = getattr(backend, "compiler_fn", backend)  # torch.compile wraps a backend
    return (isinstance(backend, torch._TorchCompileInductorWrapper)
            or backend in (lookup_backend("inductor"), lookup_backend("cudagraphs")))
