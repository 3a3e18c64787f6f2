"""The bytes that this process was handed: by malloc, which is where the CPU's tensors are, or by
CUDA's caching allocator."""

import ctypes

import torch


class _Counts(ctypes.Structure):  # glibc's struct mallinfo2
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


_libc = ctypes.CDLL(None)
_libc.mallinfo2.restype = _Counts


def allocated():
    counts = _libc.mallinfo2()
    return counts.uordblks + counts.hblkhd


def fill_new_memory(byte):
    """malloc fills what it hands out with this byte, so that no two runs agree by luck on what
    they did not write. 0: it fills nothing."""
    _libc.mallopt(-6, byte)  # M_PERTURB


class Peak:
    """The most that was handed out at the ends of a model's modules, and as each of its gradients
    was made, above what was there when this was made. `saved` is that of forward's end."""

    def __init__(self, model):
        self.peak = self.saved = 0
        self._handles = [part.register_forward_hook(self._look) for part in model.modules()]
        self._handles += [parameter.register_post_accumulate_grad_hook(self._look)
                          for parameter in model.parameters() if parameter.requires_grad]
        self._before = allocated()

    def _look(self, *_):
        self.peak = max(self.peak, allocated() - self._before)

    def forward_ended(self):
        self._look()
        self.saved = allocated() - self._before

    def stop(self):
        for handle in self._handles:
            handle.remove()


class PeakOnCuda:
    """The most that the caching allocator gave out above what was there when this was made, which
    it counts by itself. `saved` is what it has given out at forward's end."""

    def __init__(self, _):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.saved = self.peak = 0
        self._before = torch.cuda.memory_allocated()

    def forward_ended(self):
        self.saved = torch.cuda.memory_allocated() - self._before

    def stop(self):
        self.peak = torch.cuda.max_memory_allocated() - self._before
