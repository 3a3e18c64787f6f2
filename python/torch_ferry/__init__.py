"""Ferry for PyTorch users.

* `offload`, `checkpoint`, `plan` and `run`, in C++   (need the module, which is built)
* `torch_ferry.capture`   a training step, run on fake tensors, as a program file (needs torch)
* `torch_ferry.program`   the program file in Python: read, write, check (standard library only)
* `torch_ferry.dtr`       an operator log of DTR's as a program file (standard library only)
* `torch_ferry.summary`   what a program saves and costs (standard library only)

formats/PROGRAM.md describes the file. Without torch what needs the standard library alone works,
and what needs torch says so when it is asked for.
"""

try:
    from . import _built
except ImportError:  # a source tree: no module was built, and what needs none works
    _built = None

if _built is not None:
    from . import _versions

    __version__ = _built.VERSION
    _missing = _versions.needs_torch(_versions.PACKAGE, __version__)
    if _missing is not None:
        def __getattr__(name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise ImportError(_missing)
    else:
        # _C is in the folder for this torch.
        __path__.append(str(_versions.folder_for_torch(_versions.PACKAGE, __version__)))
        from ._C import CheckpointError, DiskError, DiskFull, PlanMismatch, SegmentMismatch
        from .checkpoint import (checkpoint, checkpoint_statistics, is_checkpointing,
                                 is_recomputing)
        from .guards import offload_activations
        from .offload import Offload, no_offload, offload, replay_statistics, run
        from .plan import DoesNotFit, Plan, plan
        from .stream_log import stream_log

        from . import _cuda
        _cuda.load()
