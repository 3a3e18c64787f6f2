"""Asks how long something would take on the card, for benchmarks and autotuners.

In a rehearsal, kernels and copies within a device do not run, are in no log, and do not move the
simulated time. What they allocate counts. (vgpu/runtime/control.h)
"""

import ctypes


class Rehearsal:
    def __init__(self, library):
        self._begin, self._end = (library.ferry_vgpu_begin_rehearsal,
                                  library.ferry_vgpu_end_rehearsal)
        self._begin.restype = self._end.restype = ctypes.c_int64

    def milliseconds(self, call):
        """Returns the time of what `call` gives to the card, one after the other."""
        before = self._begin()
        try:
            call()
        finally:
            after = self._end()
        return (after - before) / 1e6
