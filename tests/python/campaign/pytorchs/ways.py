"""The ways in which each test of this folder is run: as PyTorch has it, and with Ferry around.

The tests say again, in words of our own, what PyTorch's own tests of saved-tensor hooks and of
checkpoints say (test/test_autograd.py and test/test_utils.py of v2.11.0, by whose names these go).
"""

import contextlib
import functools
import gc
import unittest

from native.support import ferry, torch
from torch.utils import checkpoint as pytorch


class Way:
    def __init__(self, options=None, checkpoint=pytorch.checkpoint):
        self._options, self._checkpoint = options, checkpoint
        self.is_plain = options is None and checkpoint is pytorch.checkpoint
        self.offloads = options is not None
        self._offloads = []

    def guard(self):
        """What is around forward."""
        if self._options is None:
            return contextlib.nullcontext()
        self._offloads.append(ferry.offload(min_bytes=1, **self._options))
        return self._offloads[-1]

    def checkpoint(self, function, *args, use_reentrant=False, **options):
        return self._checkpoint(function, *args, use_reentrant=use_reentrant, **options)

    def left(self):
        """Whether an offloader has something still."""
        gc.collect()
        return not all(offload.empty() for offload in self._offloads)


OFFLOADS = {"offload": {}, "offload, window 0": {"window": 0, "prefetch": 0, "hold": 0}}


def hooks():
    return {"plain": Way()} | {name: Way(options) for name, options in OFFLOADS.items()}


def checkpoints():
    """Each with PyTorch's checkpoint, and with Ferry's in its place."""
    ours = {f"ferry.checkpoint, {name}": Way(options, ferry.checkpoint)
            for name, options in {"alone": None, **OFFLOADS}.items()}
    return hooks() | ours


def each(ways):
    """The test is given a way; it runs once for each, and leaves nothing."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            for name, way in ways().items():
                with self.subTest(way=name):
                    torch.manual_seed(0)
                    test(self, way)
                    self.assertFalse(way.left(), "something is left")
        return run
    return decorate


def gradient(output, *leaves):
    return torch.autograd.grad(output, leaves, torch.ones_like(output))


Test = unittest.TestCase
