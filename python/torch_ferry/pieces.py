"""A piece of a parameter with its part of an optimizer's state, and the bytes that hold it."""

import torch

ALIGNED = 512  # bytes: where each tensor of a piece begins


class Piece:
    """A part of a parameter that is updated at once: the elements [begin, end), or all of it."""

    def __init__(self, begin=None, end=None):
        self.begin, self.end = begin, end
        self.rest = {}     # what stays: numbers, small tensors
        self.places = {}   # key: (dtype, shape, stride, offset in bytes) of what is in the ward
        self.ward = None   # None: everything is in `rest`

    def of(self, tensor):
        """Returns the piece of a parameter or a gradient."""
        if self.begin is None:
            return tensor
        return tensor.reshape(-1)[self.begin:self.end]

    def views(self, raw):
        """Returns the tensors of the ward, as views of its bytes."""
        return views_of(raw, self.places)


def views_of(raw, places):
    found = {}
    for key, (dtype, shape, stride, offset) in places.items():
        typed = raw[offset:offset + span(shape, stride) * dtype.itemsize].view(dtype)
        found[key] = typed.as_strided(shape, stride)
    return found


def copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def same(one, other):
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one is other or torch.equal(one, other)
    return one is other or one == other


def is_like(value, piece):
    """True if a value that stays on the device has an element for each one of its piece."""
    return isinstance(value, torch.Tensor) and value.numel() == piece.end - piece.begin > 1


def dense_stride(tensor):
    """Returns the strides of the tensor without gaps, in the same order of dimensions."""
    return torch.empty_like(tensor, device="meta").stride()


def span(shape, stride):
    """Returns how many elements there are from the first to the last one."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride)) if all(shape) else 0
