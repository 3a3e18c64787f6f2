"""What happens in each forward and backward of a training."""

import contextlib
import dataclasses

import torch
import transformers

import torch_ferry as ferry
from campaign.memory import allocated
from torch_ferry import _recording


@dataclasses.dataclass
class Forward:
    shapes: dict        # of the tensors that the model was given
    before: int         # bytes that the process had been handed
    held: int = 0       # by the forward's end, more than before
    moved: int = 0      # bytes, to the host
    others: int = 0     # 1: the plan is not of it
    recomputes: int = 0  # segments, in the backward
    replays: int = 0     # spans
    peak: int = 0        # bytes, of a GPU's allocator, from here to the end of the backward


class Watch:
    def __init__(self):
        self.forwards, self.faults = [], []
        self._guard, self._handles, self._counted = None, [], None

    def begin(self, model, guard):
        self._guard = guard
        self._counted = _counts(guard)
        self._handles = [
            model.register_forward_pre_hook(self._entered, with_kwargs=True),
            model.register_forward_hook(self._left)]

    @staticmethod
    def nothing():
        return contextlib.nullcontext()

    def went_backward(self):
        one, now = self.forwards[-1], _counts(self._guard)
        one.moved, one.others, one.recomputes, one.replays = (
            new - old for new, old in zip(now, self._counted))
        self._counted = now
        one.peak = torch.cuda.max_memory_allocated()

    def end(self):
        for handle in self._handles:
            handle.remove()
        if isinstance(self._guard, ferry.Offload) and not self._guard.empty():
            self.faults.append("something is left")
        return self

    def usual(self):
        """The last forward of a batch like the first, which the plan is of, by its number."""
        return max(at for at, one in enumerate(self.forwards)
                   if not one.others and one.shapes == self.forwards[0].shapes)

    def callback(self, trainer, line):
        """Of the trainer, after Ferry's."""
        return _Callback(self, trainer, line)

    def look_at(self, guard):
        self._guard = guard

    def _entered(self, module, args, kwargs):
        if self._is_watched():
            given = {**dict(enumerate(args)), **kwargs}
            self.forwards.append(Forward(
                {name: tuple(each.shape) for name, each in given.items()
                 if isinstance(each, torch.Tensor)}, allocated()))
            if torch.cuda.is_initialized():
                torch.cuda.reset_peak_memory_stats()

    def _left(self, *_):
        if self._is_watched():
            self.forwards[-1].held = allocated() - self.forwards[-1].before

    @staticmethod
    def _is_watched():
        """Not an evaluation's forward, nor a reference's, nor that of the copy that is planned."""
        return torch.is_grad_enabled() and _recording.trace() is None


def _counts(guard):
    moved = others = 0
    if isinstance(guard, ferry.Offload):
        counts = guard.statistics()
        moved, others = counts.offloaded_bytes, counts.other_forwards
    return (moved, others, ferry.checkpoint_statistics().recomputes,
            ferry.replay_statistics().replays)


class _Callback(transformers.TrainerCallback):
    def __init__(self, watch, trainer, line):
        self._watch, self._trainer, self._line = watch, trainer, line

    def on_train_begin(self, *_, **__):
        self._watch.begin(self._trainer.model, getattr(self._line, "offload", None))

    def on_substep_end(self, *_, **__):
        self._watch.look_at(getattr(self._line, "offload", None))  # with card= it is made late
        self._watch.went_backward()

    on_step_end = on_substep_end
