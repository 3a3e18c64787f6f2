"""Offloads what autograd saves: one line around forward.

    with ferry.offload() as offload:
        loss = model(x)
    loss.backward()
    print(offload.statistics())

The scheduler and the saved-tensor hooks are in the C++ core: packing and unpacking run no Python.
"""

import atexit
import inspect
import os
import warnings

from . import _C, _recording
from .mismatch import explain
from .old_names import renamed, renamed_option
from .out_of_memory import explain as explain_out_of_memory
from .plan import Plan
from .sizes import size
from .undonated import compile_undonated

atexit.register(_C.finish_offloads)

SIZES = ("window", "prefetch", "hold", "min_bytes", "disk_bytes_max")
# Options that a plan sets itself.
_PLANNED = ("window", "prefetch", "hold", "window_tensors", "prefetch_tensors", "min_bytes",
            "pinned")
_NOTHING_SAVED = (
    "no tensor was saved for backward under this guard of torch_ferry. Put it around the forward, "
    "with gradients enabled: not around backward only, and not under torch.no_grad()")
_NO_MEMORY_SAVED = (
    "this offload saves no memory: the tensors are on the CPU, and are copied to memory of the "
    "same process. Pass a folder, for example disk=\"/var/tmp\"; on a GPU no folder is needed")


class Offload:
    """Moves saved tensors to the host and back. A context manager that can be used many times.

    A guard (`with offload:`) is for the tensors that its thread *saves* while the guard is open.
    They are brought back as long as their graph lives, so backward may run inside the guard or
    after it. One guard is one forward. If guards, `torch.autograd.graph.saved_tensors_hooks` and
    `torch.utils.checkpoint` are nested, the innermost one takes the tensor.

    Sizes are bytes, or text such as "64MiB". Defaults are in parentheses.

    window       how many bytes may stay on the device while they are copied to the host
    prefetch     how many bytes may be copied back before backward needs them; 0: none
    hold         how many bytes may stay on the device after their copy back, for further saves of
                 the same storage; 0: none. By default window, prefetch and hold follow the model:
                 a sixteenth of the bytes on the host at one time, at most 512 MiB
    window_tensors
                 the same as window, counted in saved tensors
    prefetch_tensors
                 how many saved tensors ahead of backward a copy back may begin. Tensors further
                 ahead that are still in the window leave the device when backward begins
    min_bytes    tensors that would move fewer bytes stay on the device (1024)
    disk         a folder: tensors move to a file there, and no crash leaves that file behind.
                 CPU only
    disk_bytes_max
                 the largest size of that file
    keep_when_full
                 True: a tensor stays on the device if the host or the file has no room for it.
                 False: that raises an error (False)
    fix_malloc   with a disk: fixes glibc's malloc thresholds for the whole process, so that freed
                 memory goes back to the system (True)
    device       only tensors on this device move; by default tensors on any device
    pinned       uses page-locked host memory (True; CUDA only)
    exempt       a module whose parameters and buffers stay on the device
    parameters   False: a torch.nn.Parameter may move unless it is exempt (True)
    decisions, trace
                 True: records what `take_decisions` returns and `write_trace` writes
    plan         a plan to execute, instead of window, prefetch, hold and min_bytes: what
                 `torch_ferry.plan` returned, or the path of a file that `ferry plan -o` wrote
    other_shapes with a plan: what to do if a forward has another batch, so that its saved tensors
                 have other sizes. "raise" raises PlanMismatch, "offload" offloads what the forward
                 saves from there on, "keep" keeps it on the device ("raise"). After one forward
                 that matched the plan, "offload" and "keep" also allow other differences, such as
                 a mask for a batch with padding. `statistics().other_forwards` counts these
                 forwards

    Raises ValueError if an option is invalid, and RuntimeError if the device does not exist. With a
    plan, a saved tensor that differs from the plan raises `PlanMismatch`.
    """

    def __init__(self, *, window=None, prefetch=None, hold=None, window_tensors=None,
                 prefetch_tensors=None, min_bytes=None, disk=None, disk_bytes_max=None,
                 keep_when_full=None, fix_malloc=None, device=None, pinned=None, exempt=None,
                 parameters=True, decisions=None, trace=None, plan=None, other_shapes=None, **old):
        decisions = renamed_option(old, "log", "decisions", decisions)
        options = {name: value for name, value in locals().items()
                   if value is not None and
                   name not in ("self", "exempt", "parameters", "plan", "old")}
        for name in SIZES:
            if name in options:
                options[name] = size(options[name], name)
        if "disk" in options:
            options["disk"] = os.fspath(options["disk"])
        if isinstance(options.get("device"), (str, int)):
            import torch
            options["device"] = torch.device(options["device"])
        if plan is None and other_shapes is not None:
            raise ValueError("other_shapes: expected a plan as well; it is for batches whose "
                             "shapes differ from the plan's")
        self.plan = plan
        self._conditions = getattr(plan, "conditions", None)
        self._idle = True  # no guard has ended yet: the first one may give a warning
        self._core = _C.Offload(options, _understood(plan, options), parameters)
        if exempt is not None:
            self.exempt(exempt)

    def __enter__(self):
        if _recording.trace() is not None:  # a capture records the step without Ferry
            return self
        try:
            self._core.open()
        except _C.PlanMismatch as error:
            explain(error, self._conditions)
            raise
        compile_undonated()
        return self

    def __exit__(self, kind, error, traceback):
        if _recording.trace() is not None:
            return
        if isinstance(error, _C.PlanMismatch):
            explain(error, self._conditions)
        explain_out_of_memory(error, self.plan)
        try:
            self._core.close(kind is not None)
        except _C.PlanMismatch as short:
            explain(short, self._conditions)
            raise
        if self._idle and kind is None:
            self._idle = False
            counts = self._core.step_statistics()
            if counts.packs == 0:
                warnings.warn(_NOTHING_SAVED, stacklevel=2)
            elif counts.offloaded_count and self._core.saves_nothing():
                warnings.warn(_NO_MEMORY_SAVED, stacklevel=2)

    def __reduce__(self):
        raise TypeError(
            "a torch_ferry.Offload belongs to one process, and cannot be pickled or copied: keep "
            "it out of objects that go to another process (a DataLoader's dataset and collate_fn, "
            "a model that is saved), and make another Offload there")

    def exempt(self, kept):
        """Leaves the parameters and buffers of a module, or a single tensor, where they are."""
        tensors = [kept]
        if hasattr(kept, "parameters"):
            tensors = [*kept.parameters(), *kept.buffers()]
        for tensor in tensors:
            self._core.exempt(tensor)

    def statistics(self):
        """Returns the counts since this was made. `print` shows them as a line.

        `peak_bytes` is the peak of the memory in use, of the GPU's allocator or, with a disk, of
        the process. `peak_without_bytes` is what the peak would have been at least if nothing had
        moved. Both are 0 on a CPU without a disk. `stalled_ns` is the time that CPU threads waited
        for copies, and `compute_waits` is how often a GPU's streams wait for one."""
        return self._core.statistics()

    def step_statistics(self):
        """Returns the counts since the last guard was opened."""
        return self._core.step_statistics()

    def empty(self):
        """Returns True if nothing is left: no copy, no reference, no event. After a backward on a
        GPU it becomes True a moment later, when the engine's thread of that device is done."""
        return self._core.empty()

    def take_decisions(self):
        """Returns the decisions since the last call as the text of a decision log, for a file that
        `ferry replay` reads. Needs decisions=True."""
        return self._core.take_decisions()

    @renamed("take_decisions")
    def take_log(self):
        return self.take_decisions()

    def write_trace(self, path):
        """Writes the copies, and the operators under the guards, as a trace for ui.perfetto.dev.
        Needs trace=True."""
        self._core.write_trace(os.fspath(path))

    def __repr__(self):
        return f"<torch_ferry.Offload: {self.statistics()}>"


def offload(**options):
    """Returns an `Offload` with these options: `with ferry.offload(window="64MiB"): …`."""
    return Offload(**options)


_signature = inspect.signature(Offload)
offload.__signature__ = _signature.replace(
    parameters=[each for name, each in _signature.parameters.items() if name != "old"])


def execute(plan, **options):
    """Returns an `Offload` that executes a plan.

    `plan` is what `torch_ferry.plan` returned, or the path of a file that `ferry plan -o` wrote.
    One guard is one forward: with gradient accumulation, open the guard for each forward.
    other_shapes="offload" or "keep" lets forwards of other batches run without the plan.

    The plan decides which calls of `torch_ferry.checkpoint` are recomputed. Operators that the plan
    recomputes run again in backward, but no Python function of the model does.

    Raises ValueError if the file is no plan (the message has file and line), and for options that
    the plan sets itself. With a saved tensor that differs from the plan, the forward raises
    `PlanMismatch`."""
    if plan is None:
        raise TypeError("expected a plan: what torch_ferry.plan returned, or the path of a file "
                        "that `ferry plan -o` wrote; got None")
    return Offload(plan=plan, **options)


@renamed("execute")
def run(plan, **options):
    return execute(plan, **options)


def _understood(plan, options):
    """Returns the plan as an object of the core."""
    if plan is None:
        return None
    if own := [name for name in _PLANNED if name in options]:
        raise ValueError(f"{own[0]}: a plan has its own value; leave this option out, or offload "
                         "without a plan")
    return plan.understood() if isinstance(plan, Plan) else _C.Plan.read(os.fspath(plan))


def replay_statistics():
    """Returns the counts of the operators that plans recomputed in this process, by span. `print`
    shows them as a line."""
    return _C.replay_statistics()


class no_offload:
    """A guard under which no saved tensor is offloaded, for example around the output head."""

    def __init__(self):
        self._core = _C.NoOffload()

    def __enter__(self):
        self._core.open()
        return self

    def __exit__(self, kind, error, traceback):
        self._core.close()
