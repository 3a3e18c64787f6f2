"""Activation offloading, and plans, in Hugging Face's Trainer and TRL's:

    Trainer(..., callbacks=[OffloadCallback(window="64MiB")])
    Trainer(..., callbacks=[OffloadCallback(plan="train.plan")])
    Trainer(..., callbacks=[OffloadCallback(card="rtx4090", budget="20GiB")])

Evaluation is left alone. Nothing is put on the model but while it makes a step, so a training that
failed leaves it as it was; what stands around the step is the Trainer's own method.

Without a plan a guard is around each forward of the model that trains. With one it goes on to the
beginning of the backward, as a capture of the script does: the loss that a Trainer computes of the
model's output is part of the step. With card= the plan is made of the Trainer's own first step
(`torch_ferry.trainer_step`).
"""

import contextlib
import functools
import logging
import sys
import threading
from unittest import mock

import torch
from transformers import Trainer, TrainerCallback

from . import _recording
from ._C import PlanMismatch
from .hf_checkpoint import calls_ours, of_hugging_face, use_checkpoint
from .heads import leave_alone, left_alone
from .offload import SIZES, offload, run
from .plan import Request
from .sizes import size

__all__ = ["OffloadCallback", "use_checkpoint"]

_PLANNING = ("budget", "policies")
_OWN_STEP = ("If it is the Trainer's step that differs from what was planned, a loss of its own say: "
             "OffloadCallback(card=…, budget=…) plans that step itself.")


class OffloadCallback(TrainerCallback):
    """Offloads while a Trainer trains, from `train()` to its end.

    Args:
        plan: what `torch_ferry.plan` returned, or the path of a file of `ferry plan -o`. It decides
            on all that is saved, the head's tensors included, and on which layers are recomputed:
            the model's gradient checkpointing calls `torch_ferry.checkpoint` meanwhile.
        card: plans the Trainer's own first step for this card, and carries that out; with budget=
            and policies= as `torch_ferry.plan` has them. The plan is `callback.plan` then.
        other_shapes: of steps of another batch than the plan's: "offload" (the default with a
            plan), "keep" or "raise". `callback.offload.statistics()` counts them.
        keep_head: what the model's output head saves stays (`torch_ferry.heads`); without a plan.
        options: of `torch_ferry.offload`; or `offload=`, an Offload that was made already.
    """

    def __init__(self, plan=None, *, card=None, other_shapes=None, keep_head=None, **options):
        made = options.pop("offload", None)
        planning = {name: options.pop(name) for name in _PLANNING if name in options}
        if made is not None and (options or plan is not None or card is not None):
            given = sorted([*options, *["plan"] * (plan is not None), *["card"] * bool(card)])
            raise TypeError("offload= has its options already: "
                            f"{', '.join(given)} cannot be given beside it")
        if plan is not None and card is not None:
            raise TypeError("expected a plan, or a card to plan for; got both")
        if planning and card is None:
            raise TypeError(f"{next(iter(planning))}: expected card= beside it, to plan for")
        self.plan = plan if made is None else made.plan
        self._request = None if card is None else {"card": card, **planning}
        if card is not None:  # what is wrong is told now, and not when a training has begun
            Request(card, planning.get("budget"), planning.get("policies"), None, None, 1)
        for name in set(options) & set(SIZES):
            size(options[name], name)
        planned = self.plan is not None or self._request is not None
        if keep_head and planned:
            raise TypeError("keep_head: a plan decides on the head as on everything else; leave "
                            "it out")
        self.keep_head = not planned if keep_head is None else keep_head
        if planned:
            options["other_shapes"] = other_shapes or "offload"
        elif other_shapes is not None:
            raise TypeError("other_shapes: expected a plan beside it, whose shapes are the usual")
        self._options = options
        self.offload = made
        if made is None and self._request is None:
            self.offload = offload(**options) if plan is None else run(plan, **options)
        self._undo = contextlib.ExitStack()

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self.remove()  # a train() that raised had no end
        if self.offload is not None:
            self.offload.exempt(model)
        trainer = _trainer_here()
        if trainer is None:
            raise RuntimeError("OffloadCallback: expected a Trainer of transformers, or of a class "
                               "that derives from it, to begin a training")
        step = trainer.training_step
        trainer.training_step = functools.partial(self._step, trainer, step)
        self._undo.callback(trainer.__dict__.pop, "training_step", None)

    def on_train_end(self, args, state, control, **kwargs):
        self.remove()
        if self.offload is not None and (others := self.offload.statistics().other_forwards):
            logging.getLogger(__name__).warning(
                "%d forwards were not the plan's, for their batches had other shapes: %s", others,
                self.offload.statistics())

    def remove(self):
        """The Trainer and the model are as they were before."""
        self._undo.close()

    def _plans(self):
        return self.plan is not None or self._request is not None

    def _step(self, trainer, step, model, *args, **kwargs):
        if _recording.trace() is not None:  # the script is captured: as it is without
            return step(model, *args, **kwargs)
        with contextlib.ExitStack() as stack:
            if self._plans() and of_hugging_face(model) and not calls_ours(model):
                stack.callback(use_checkpoint(model))
            return self._as_planned(trainer, step, model, *args, **kwargs)

    def _as_planned(self, trainer, step, model, *args, **kwargs):
        if self._request is not None and self.plan is None:
            from .trainer_step import plan_step
            self.plan = plan_step(trainer, step, model, args, kwargs, **self._request)
            self.offload = run(self.plan, **self._options)
            self.offload.exempt(model)
        try:
            with self._guarded(model):
                return step(model, *args, **kwargs)
        except PlanMismatch as error:
            if self._request is None:
                error.args = (f"{error}\n{_OWN_STEP}",)
            raise

    @contextlib.contextmanager
    def _guarded(self, model):
        guard = _Guard(self.offload)
        with contextlib.ExitStack() as stack:
            stack.enter_context(guard)
            for handle in self._hooks(model, guard):
                stack.callback(handle.remove)
            if self._plans():
                stack.enter_context(guard.until_backward())
            yield

    def _hooks(self, model, guard):
        handles = [model.register_forward_pre_hook(guard.open)]
        if not self._plans():
            handles.append(model.register_forward_hook(guard.close, always_call=True))
        if self.keep_head:
            for module in left_alone(model):
                handles += leave_alone(module)
        return handles


class _Guard:
    """A guard of one step, opened by the model's call; a context, which closes what is open."""

    def __init__(self, offload):
        self._offload = offload
        self._here = threading.local()  # a guard is its thread's

    def open(self, *_):
        if torch.is_grad_enabled() and not self._is_open():
            self._offload.__enter__()
            self._here.is_open = True

    def close(self, *error):
        if self._is_open():
            self._here.is_open = False
            failed = len(error) == 3 and isinstance(error[1], BaseException)
            self._offload.__exit__(*(error if failed else (None, None, None)))

    def _is_open(self):
        return getattr(self._here, "is_open", False)

    def until_backward(self):
        """A context in which `torch.autograd.backward` closes it."""
        backward = torch.autograd.backward

        def closing(*args, **kwargs):
            self.close()
            return backward(*args, **kwargs)

        return mock.patch.object(torch.autograd, "backward", closing)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close(*error)


def _trainer_here():
    """The Trainer whose call this is: a callback is not given it."""
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Trainer):
            return found
        frame = frame.f_back
    return None
