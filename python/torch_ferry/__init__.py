"""Ferry for PyTorch: training in less memory.

* `offload`, `checkpoint`, `plan` and `execute` use the compiled module `_C`
* `torch_ferry.capture`   writes a training step, run on fake tensors, as a program (needs torch)
* `torch_ferry.program`   reads, writes and checks programs (standard library only)
* `torch_ferry.dtr`       makes a program of an operator log of DTR (standard library only)
* `torch_ferry.summary`   prints what a program saves and costs (standard library only)

formats/PROGRAM.md describes the program file. Without torch, the modules that need only the
standard library work, and the names that need torch raise an ImportError when they are used.
"""

try:
    from . import _built
except ImportError:  # a source tree without a build: only what needs no compiled module works
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
        from .auto import auto, largest_batch
        from .checkpoint import (checkpoint, checkpoint_statistics, is_checkpointing,
                                 is_recomputing)
        from .guards import offload_activations
        from .offload import Offload, execute, no_offload, offload, replay_statistics, run
        from .optimizer import optimizer
        from .plan import DoesNotFit, Plan, plan
        from .stream_log import stream_log
        from .stream_weights import stream_weights

        from . import _cuda, virtual
        _cuda.load()
