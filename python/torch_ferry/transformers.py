"""Activation offloading in Hugging Face's Trainer:

    Trainer(..., callbacks=[OffloadCallback(window="64MiB")])

Each forward of the model that trains runs under one guard, so gradient accumulation and plans
agree; evaluation is left alone. Options are those of `torch_ferry.offload`.
"""

import threading

import torch
from transformers import TrainerCallback

from .heads import leave_alone, left_alone
from .offload import offload

__all__ = ["OffloadCallback"]


class OffloadCallback(TrainerCallback):
    """Offloads while a Trainer trains, from `train()` to its end.

    Args:
        keep_head: what the model's output head saves stays (`torch_ferry.heads`).
        options: of `torch_ferry.offload`; or `offload=`, an Offload that was made already.
    """

    def __init__(self, keep_head=True, **options):
        made = options.pop("offload", None)
        if made is not None and options:
            raise TypeError("offload= has its options already: "
                            f"{', '.join(sorted(options))} cannot be given beside it")
        self.offload = offload(**options) if made is None else made
        self.keep_head = keep_head
        self._handles = []
        self._here = threading.local()  # a guard is its thread's, and of one forward

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self.remove()  # a train() that raised had no end
        self.offload.exempt(model)
        self._handles = [model.register_forward_pre_hook(self._open),
                         model.register_forward_hook(self._close, always_call=True)]
        if self.keep_head:
            for module in left_alone(model):
                self._handles += leave_alone(module)

    def on_train_end(self, args, state, control, **kwargs):
        self.remove()

    def remove(self):
        """The model is as it was before."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _open(self, *_):
        if not hasattr(self._here, "guards"):
            self._here.guards = []
        guarded = torch.is_grad_enabled()
        if guarded:
            self.offload.__enter__()
        self._here.guards.append(guarded)

    def _close(self, *_):
        if self._here.guards.pop():
            self.offload.__exit__(None, None, None)
