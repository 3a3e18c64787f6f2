"""Writes the stream log of a training, for `ferry check`.

It is for trainings on the CPU or on a real GPU; `ferry run` writes a log by itself. The recording
is C++, in the compiled module.
"""

import os

from . import _C


class stream_log:
    """Writes a stream log, in which `ferry check` finds hazards.

        with ferry.stream_log("run.jsonl"):
            with ferry.offload() as offload:   # made inside: its copies are in the log then
                loss = model(x)
            loss.backward()

    The log has the operators that this thread runs in the block, and those of the backwards that it
    begins, each with the bytes that it reads and writes. It also has the blocks that the allocator
    gives out and takes back, and every copy, event and wait of the Offloads that are made inside.

    path     the file. It is written at the end of the block, also after an exception
    device   the device that computes: "cpu" or "cuda"

    Raises OSError if the file cannot be written, and RuntimeError if another log is being written.
    An Offload that was made before the log raises RuntimeError if it is used inside.
    """

    def __init__(self, path, device="cpu"):
        self._path = os.fspath(path)
        self._device = device
        self._log = None

    def __enter__(self):
        import torch
        self._log = _C.StreamLog(self._path, torch.device(self._device))
        return self

    def __exit__(self, kind, error, traceback):
        log, self._log = self._log, None
        log.close()
