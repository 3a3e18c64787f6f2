"""Three training steps of each architecture, plain and in each way of Ferry's: the same bits, a
lower peak, and nothing left.

The ways: offloading (to memory with window 0 and with Ferry's defaults, and wholly: to a disk where
the model is on a CPU) and, where the model can checkpoint its layers, both variants of PyTorch's
checkpoint and of Ferry's, with offloading around. A checkpoint by PyTorch without Ferry stands in
for the plain run there: what a layer is given twice, or a weight is used for twice, may be added in
another order.
"""

import contextlib
import dataclasses
import functools
import gc
import tempfile

import torch
from torch.utils.checkpoint import checkpoint as pytorchs

import torch_ferry as ferry
from campaign.bits import same
from campaign.memory import Peak, PeakOnCuda
from campaign.models import MODELS

STEPS = 3


@dataclasses.dataclass
class Run:
    given: list  # the losses and gradients of each step
    saved: int = 0
    peak: int = 0


def train(make, guard, checkpoint=None):
    """The steps of a model made anew, each of other weights and with dropout."""
    gc.collect()
    torch.manual_seed(1)
    model, batch = make()
    model.train()
    measure = PeakOnCuda if model.device.type == "cuda" else Peak
    if checkpoint:
        model._set_gradient_checkpointing(enable=True, gradient_checkpointing_func=checkpoint)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = Run([])
    for number in range(STEPS):
        torch.manual_seed(number)
        optimizer.zero_grad()
        measured = measure(model)
        with guard:
            loss = model(**batch).loss
        measured.forward_ended()
        loss.backward()
        measured.stop()
        run.saved, run.peak = max(run.saved, measured.saved), max(run.peak, measured.peak)
        run.given.append([loss.detach()] + [
            None if parameter.grad is None else parameter.grad.clone()
            for parameter in model.parameters()])
        optimizer.step()
    return run


def difference(want, got):
    """What differs first, in words; none where all is the same to the bit."""
    for step, (ours, theirs) in enumerate(zip(got.given, want.given, strict=True)):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if not same(one, other):
                what = "the loss" if number == 0 else f"gradient {number - 1}"
                return f"step {step}: {what} differs"
    return None


@dataclasses.dataclass
class Row:
    model: str
    packs: int = 0
    moved: int = 0
    peaks: tuple = (0, 0)
    ways: int = 0
    faults: list = dataclasses.field(default_factory=list)
    left_out: list = dataclasses.field(default_factory=list)

    def text(self):
        before, after = self.peaks
        return (f"{self.model:18} {self.packs:6} {self.moved / 1e6:9.2f} {before / 1e6:8.2f} "
                f"{after / 1e6:8.2f} {self.ways:5}  {'; '.join(self.left_out)}")


HEAD = f"{'model':18} {'packs':>6} {'moved MB':>9} {'peak MB':>8} {'after':>8} {'equal':>5}"


class _Tried:
    """One model in all its ways."""

    def __init__(self, name, make, folder):
        self.make, self.folder, self.row = make, folder, Row(name)

    def compare(self, way, want, guard, checkpoint=None):
        got = train(self.make, guard, checkpoint)
        faults = [difference(want, got)]
        if isinstance(guard, ferry.Offload):
            if not guard.empty():
                faults.append("something is left")
            if not guard.statistics().offloaded_count:
                faults.append("nothing moved")
        if checkpoint and ferry.checkpoint_statistics().alive:
            faults.append("a checkpoint is left")
        faults = [f"{way}: {fault}" for fault in faults if fault]
        self.row.faults += faults
        self.row.ways += not faults
        return got

    def offloads(self, plain):
        self.compare("offload, window 0", plain, ferry.offload(window=0))
        self.compare("offload", plain, ferry.offload())
        # Wholly: on a CPU to a disk, for its host memory is where the tensors are.
        all_of_it = dict(window=0, prefetch=0, hold=0, min_bytes=0)
        if self.folder:
            all_of_it["disk"] = self.folder
        wholly = ferry.offload(**all_of_it)
        way = f"offload {'to disk' if self.folder else 'wholly'}"
        moved = self.compare(way, plain, wholly)
        counts = wholly.statistics()
        self.row.packs, self.row.moved = counts.packs, counts.offloaded_bytes
        self.row.peaks = plain.peak, moved.peak
        for what, before, after in (("peak", plain.peak, moved.peak),
                                    ("what forward holds", plain.saved, moved.saved)):
            if after >= before:
                self.row.faults.append(f"{way}: {what} is {after}, not below {before}")

    def checkpoints(self, plain):
        for reentrant in (False, True):
            variant = "reentrant" if reentrant else "without reentrance"
            theirs = functools.partial(pytorchs, use_reentrant=reentrant)
            ours = functools.partial(ferry.checkpoint, use_reentrant=reentrant)
            want = train(self.make, contextlib.nullcontext(), theirs)
            if difference(plain, want):
                self.row.left_out.append(f"PyTorch's checkpoint {variant} is not as plain")
            if difference(want, train(self.make, contextlib.nullcontext(), theirs)):
                self.row.left_out.append(f"PyTorch's checkpoint {variant} differs from itself")
                continue
            self.compare(f"PyTorch's checkpoint {variant}, offload", want,
                         ferry.offload(window=0), theirs)
            self.compare(f"checkpoint {variant}", want, contextlib.nullcontext(), ours)
            self.compare(f"checkpoint {variant}, offload", want, ferry.offload(window=0), ours)


def try_model(name, make, folder):
    tried = _Tried(name, make, folder)
    plain = train(make, contextlib.nullcontext())
    if difference(plain, train(make, contextlib.nullcontext())):
        tried.row.left_out.append("its plain runs differ")
        return tried.row
    tried.offloads(plain)
    if getattr(make()[0], "supports_gradient_checkpointing", False):
        tried.checkpoints(plain)
    else:
        tried.row.left_out.append("has no gradient checkpointing")
    return tried.row


def on(device, make):
    """The model and its batch, drawn on the CPU whatever the device is."""
    model, batch = make()
    return model.to(device), {name: part.to(device) for name, part in batch.items()}


def run_all(names=(), device="cpu"):
    """A row for each model, as it is done."""
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MODELS.items():
            if names and name not in names:
                continue
            try:
                yield try_model(name, functools.partial(on, device, make),
                                folder if device == "cpu" else None)
            except ImportError as error:
                yield Row(name, left_out=[f"not here: {error}"])
