"""Offloading and plans in Hugging Face's Trainer and TRL's trainers, with one callback:

    Trainer(..., callbacks=[OffloadCallback(window="64MiB")])
    Trainer(..., callbacks=[OffloadCallback(plan="train.plan")])    # or plan="auto"
    Trainer(..., callbacks=[OffloadCallback(card="rtx4090", budget="20GiB")])

Evaluation is not changed. The callback wraps the Trainer's `training_step`. It puts hooks on the
model only during a step, so a training that failed leaves the model as it was.

Without a plan, a guard is open during each forward of the model that trains. With a plan it stays
open until backward begins, because the loss that a Trainer computes from the model's output is part
of the planned step. With card= the Trainer's own first step is planned.
"""

import contextlib
import sys

from transformers import Trainer, TrainerCallback

from .callbacks import Offloads, is_captured
from .guards import head_stays
from .hf_checkpoint import use_checkpoint
from .trainer_step import plan_trainer_step

__all__ = ["OffloadCallback", "use_checkpoint"]


class OffloadCallback(Offloads, TrainerCallback):
    __doc__ = Offloads.__doc__
    _modes_decide = False  # `Trainer.training_step` calls model.train()

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        trainer = _trainer_here()
        if trainer is None:
            raise RuntimeError("OffloadCallback: expected a call from a Trainer of transformers, "
                               "or from a class that derives from it")
        self._begin(model, trainer)

    def on_train_end(self, args, state, control, **kwargs):
        self._end()

    def _step(self, trainer, step, model, *args, **kwargs):
        if is_captured():
            return step(model, *args, **kwargs)

        def plan_step(**request):
            return plan_trainer_step(trainer, step, model, args, kwargs, **request)

        around = self._around(model, plan_step, (args, kwargs), trainer.optimizer)
        with around as guard, contextlib.ExitStack() as stack:
            for handle in guard.hooks(model, closes=not self._plans()):
                stack.callback(handle.remove)
            if self.keep_head:
                for handle in head_stays(model):
                    stack.callback(handle.remove)
            if self._plans():
                stack.enter_context(guard.until_backward())
            return step(model, *args, **kwargs)


def _trainer_here():
    """Returns the Trainer that calls this callback; Trainers do not pass themselves to callbacks.
    """
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Trainer):
            return found
        frame = frame.f_back
    return None
