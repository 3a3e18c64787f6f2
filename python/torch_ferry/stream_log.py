"""The stream log of a training, for `ferry check`."""

import os

from . import _C


class stream_log:
    """Writes down what every stream does, for `ferry check`, which judges its stream safety.

        with ferry.stream_log("run.jsonl"):
            with ferry.offload() as offload:   # made inside: its copies are in the log then
                loss = model(x)
            loss.backward()

    In the log are the ops that this thread runs meanwhile, with the backwards that it begins, each
    with the bytes that it reads and writes; the blocks that the allocator hands out and takes back;
    every copy, event and wait of the Offloads that are made inside.

    path     the file. It appears at the end of the block, also where an exception ends it
    device   what computes: "cpu", or "cuda"

    Raises OSError where the file cannot be written, and RuntimeError where a log is being written
    already. An Offload that was made before the log raises RuntimeError when it is used inside.
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
