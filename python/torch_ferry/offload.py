"""Offloading what autograd saves: one line around forward.

    with ferry.offload() as offload:
        loss = model(x)
    loss.backward()
    print(offload.statistics())

The scheduling is the C++ core's, and so are the hooks: packing and unpacking run no Python.
"""

import atexit
import inspect
import os
import warnings

from . import _C, _recording
from .mismatch import explain
from .plan import Plan
from .sizes import size

atexit.register(_C.finish_offloads)

SIZES = ("window", "prefetch", "hold", "min_bytes", "disk_bytes_max")
# What a plan has of its own.
_PLANNED = ("window", "prefetch", "hold", "window_tensors", "prefetch_tensors", "min_bytes",
            "pinned")
_NOTHING_SAVED = (
    "nothing that backward needs was saved under this guard of torch_ferry. Put it around the "
    "forward, with gradients enabled: not around backward alone, and not under torch.no_grad()")
_NO_MEMORY_SAVED = (
    "this offload saves no memory: the tensors are on the CPU, and what moves goes to memory of the "
    "same process. Give it a folder, disk=\"/var/tmp\" say; on a GPU none is needed")


class Offload:
    """What moves saved tensors to the host and back. A context manager, to be used again and again.

    A guard (`with offload:`) marks what is *saved* on its thread meanwhile; it is served for as
    long as its graph lives, whether backward runs inside the guard or after it. One guard is one
    forward. Between this, `torch.autograd.graph.saved_tensors_hooks` and
    `torch.utils.checkpoint` the innermost wins.

    Sizes are bytes, or text such as "64MiB".

    window       how much of what is on its way to the host may still be on the device
    prefetch     how much is brought back ahead of its use; 0: nothing
    hold         how much is held for further saves of the same storage; 0: nothing
                 (these three follow the model by default: a sixteenth of what is on the host at
                 once, at most 512 MiB)
    window_tensors
                 the same as window, counted in saved tensors
    prefetch_tensors
                 how many saved tensors ahead of its use something may be brought back; what the
                 window has of more distant ones leaves when backward begins
    min_bytes    tensors that would move less are kept (1024)
    disk         a folder: the host's side is a file there, which no crash leaves behind. CPU only
    disk_bytes_max
                 its limit
    keep_when_full
                 a tensor for which there is no room on the host or in the file is kept (False:
                 the error is raised)
    fix_malloc   with a disk: fixes glibc's malloc thresholds for the process, so that memory
                 which is freed leaves it (True)
    device       where the tensors live that move; by default wherever they live
    pinned       page-locked host memory (True; CUDA only)
    exempt       a module: its parameters and buffers are kept
    parameters   False: torch.nn.Parameters are not kept by themselves
    log, trace   keep what `take_log` and `write_trace` need
    plan         a plan, executed in place of window, prefetch, hold, min_bytes: what
                 `torch_ferry.plan` returns, or the path of a file that `ferry plan -o` wrote
    other_shapes with a plan, of a forward of another batch, whose saved tensors have other sizes
                 ("raise"): "raise" a PlanMismatch, "offload" what it saves from there on, or "keep"
                 it. Once a forward was the plan's these two take any other difference so as well (a
                 mask, where a batch has padding). `statistics().other_forwards` counts them

    Raises ValueError where an option makes no sense, and RuntimeError where the device is not
    there. Under a plan a saved tensor that is not the plan's raises `PlanMismatch`.
    """

    def __init__(self, *, window=None, prefetch=None, hold=None, window_tensors=None,
                 prefetch_tensors=None, min_bytes=None, disk=None, disk_bytes_max=None,
                 keep_when_full=None, fix_malloc=None, device=None, pinned=None, exempt=None,
                 parameters=True, log=None, trace=None, plan=None, other_shapes=None):
        options = {name: value for name, value in locals().items()
                   if value is not None and name not in ("self", "exempt", "parameters", "plan")}
        for name in SIZES:
            if name in options:
                options[name] = size(options[name], name)
        if "disk" in options:
            options["disk"] = os.fspath(options["disk"])
        if isinstance(options.get("device"), (str, int)):
            import torch
            options["device"] = torch.device(options["device"])
        if plan is None and other_shapes is not None:
            raise ValueError("other_shapes: expected a plan beside it, whose shapes are the usual")
        self.plan = plan
        self._conditions = getattr(plan, "conditions", None)
        self._idle = True  # nothing was saved yet, and nobody was told
        self._core = _C.Offload(options, _understood(plan, options), parameters)
        if exempt is not None:
            self.exempt(exempt)

    def __enter__(self):
        if _recording.trace() is not None:  # a capture sees the step as it is without
            return self
        try:
            self._core.open()
        except _C.PlanMismatch as error:
            explain(error, self._conditions)
            raise
        return self

    def __exit__(self, kind, error, traceback):
        if _recording.trace() is not None:
            return
        if isinstance(error, _C.PlanMismatch):
            explain(error, self._conditions)
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
            "a torch_ferry.Offload is of one process, and cannot be pickled or copied: keep it out "
            "of what goes to another one (a DataLoader's dataset and collate_fn, a model that is "
            "saved), and make another there")

    def exempt(self, kept):
        """What the module owns, or this tensor, is kept where it is."""
        tensors = [kept]
        if hasattr(kept, "parameters"):
            tensors = [*kept.parameters(), *kept.buffers()]
        for tensor in tensors:
            self._core.exempt(tensor)

    def statistics(self):
        """Counts since this was made. They print as a line.

        `peak_bytes` is what the GPU's allocator had in use at most (with a disk: the process), and
        `peak_without_bytes` how much it would have been at least had nothing moved; 0 where nobody
        knows, on a CPU without a disk. `stalled_ns` is what waiting for copies cost there, and
        `compute_waits` how often a GPU's streams wait for one."""
        return self._core.statistics()

    def step_statistics(self):
        """Counts since the last guard was opened."""
        return self._core.step_statistics()

    def empty(self):
        """Whether nothing is left: no copy, no reference, no event. After a backward on a GPU that
        is so a moment later, when the engine's thread of that device is done."""
        return self._core.empty()

    def take_log(self):
        """The decisions since the last call, as the text of a decision log: write it to a file for
        `ferry replay`. Needs log=True."""
        return self._core.take_log()

    def write_trace(self, path):
        """The copies, and the ops under the guards, for ui.perfetto.dev. Needs trace=True."""
        self._core.write_trace(os.fspath(path))

    def __repr__(self):
        return f"<torch_ferry.Offload: {self.statistics()}>"


def offload(**options):
    """An `Offload` with these options: `with ferry.offload(window="64MiB"): loss = model(x)`."""
    return Offload(**options)


offload.__signature__ = inspect.signature(Offload)


def run(plan, **options):
    """An `Offload` that executes a plan: what `torch_ferry.plan` returned, or the path of a file
    that `ferry plan -o` wrote. One guard is one forward: under gradient accumulation open it for
    each. other_shapes="offload" or "keep" lets forwards of other batches run without the plan.

    Calls of `torch_ferry.checkpoint` under it are recomputed, or not, as the plan says. Operators
    that the plan recomputes run again in backward, and no function of the model's.

    Raises ValueError for a file that is no plan, with file and line, and for options that are the
    plan's own."""
    if plan is None:
        raise TypeError("expected a plan: what torch_ferry.plan returned, or the path of a file "
                        "that `ferry plan -o` wrote; got None")
    return Offload(plan=plan, **options)


def _understood(plan, options):
    """The plan as the core has it."""
    if plan is None:
        return None
    if own := [name for name in _PLANNED if name in options]:
        raise ValueError(f"{own[0]}: a plan has its own; leave it out, or offload without a plan")
    return plan.understood() if isinstance(plan, Plan) else _C.Plan.read(os.fspath(plan))


def replay_statistics():
    """Counts of the spans of operators that plans recomputed in this process. They print as a
    line."""
    return _C.replay_statistics()


class no_offload:
    """A guard under which what is saved is left alone: the output head, say."""

    def __init__(self):
        self._core = _C.NoOffload()

    def __enter__(self):
        self._core.open()
        return self

    def __exit__(self, kind, error, traceback):
        self._core.close()
