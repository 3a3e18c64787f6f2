"""Offloading what autograd saves: one line around forward.

    with ferry.offload() as offload:
        loss = model(x)
    loss.backward()
    print(offload.statistics())

The scheduling is the C++ core's, and so are the hooks: packing and unpacking run no Python.
"""

import atexit
import os
import re

from . import _C
from .plan import Plan

atexit.register(_C.finish_offloads)

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZES = ("window", "prefetch", "hold", "min_bytes", "disk_bytes_max")


def size(value):
    """Bytes: a number of them, or text such as "64MiB" or "1.5 GiB"."""
    if not isinstance(value, str):
        return int(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if not match or match[2] not in _UNITS:
        raise ValueError(
            f'expected a size in bytes, such as 67108864 or "64MiB"; got {value!r} '
            f"(units: {', '.join(unit for unit in _UNITS if unit)})")
    whole, _, part = match[1].partition(".")
    unit = _UNITS[match[2]]
    return int(whole) * unit + int(part or 0) * unit // 10 ** len(part)


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

    Raises ValueError where an option makes no sense, and RuntimeError where the device is not
    there. Under a plan a saved tensor that is not the plan's raises `PlanMismatch`.
    """

    def __init__(self, *, exempt=None, parameters=True, plan=None, **options):
        options = {name: value for name, value in options.items() if value is not None}
        for name in _SIZES:
            if name in options:
                options[name] = size(options[name])
        if "disk" in options:
            options["disk"] = os.fspath(options["disk"])
        if isinstance(options.get("device"), (str, int)):
            import torch
            options["device"] = torch.device(options["device"])
        if isinstance(plan, Plan):
            plan = plan.understood()
        elif plan is not None:
            plan = _C.Plan.read(os.fspath(plan))
        self._core = _C.Offload(options, plan, parameters)
        if exempt is not None:
            self.exempt(exempt)

    def __enter__(self):
        self._core.open()
        return self

    def __exit__(self, kind, error, traceback):
        self._core.close(kind is not None)

    def exempt(self, kept):
        """What the module owns, or this tensor, is kept where it is."""
        tensors = [kept]
        if hasattr(kept, "parameters"):
            tensors = [*kept.parameters(), *kept.buffers()]
        for tensor in tensors:
            self._core.exempt(tensor)

    def statistics(self):
        """Counts since this was made. They print as a line."""
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


def run(plan, **options):
    """An `Offload` that executes a plan: what `torch_ferry.plan` returned, or the path of a file
    that `ferry plan -o` wrote. One guard is one forward: under gradient accumulation open it for
    each.

    Calls of `torch_ferry.checkpoint` under it are recomputed, or not, as the plan says. Operators
    that the plan recomputes run again in backward, and no function of the model's.

    Raises ValueError for a file that is no plan, with file and line."""
    return Offload(plan=plan, **options)


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
