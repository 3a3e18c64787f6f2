"""Offloading and plans in Lightning's Trainer, with one callback:

    Trainer(..., callbacks=[OffloadCallback(window="64MiB")])
    Trainer(..., callbacks=[OffloadCallback(plan="train.plan")])    # or plan="auto"
    Trainer(..., callbacks=[OffloadCallback(card="rtx4090", budget="20GiB")])

A guard is open during each `training_step` of the module, with its loss, and is closed before the
backward. Validation, tests and predictions are not changed. With card= the first such step is
planned. If the module optimizes by itself (`automatic_optimization=False`), each backward in the
step closes the guard and opens another one after it. Such a module cannot have a plan. The
callback is for `lightning` or `pytorch_lightning`, whichever is imported.
"""

import contextlib
import importlib
import sys

import torch

from .callbacks import Offloads, is_captured
from .guards import head_stays
from .heads import output_head
from .out_of_memory import explain
from .plan import Request
from .trainer_step import plan_step

__all__ = ["OffloadCallback"]


def _library():
    names = ("lightning.pytorch", "pytorch_lightning")
    if found := [sys.modules[name] for name in names if name in sys.modules]:
        return found[0]
    try:
        return importlib.import_module(names[0])
    except ModuleNotFoundError as error:
        if error.name not in ("lightning", names[0]):
            raise
        return importlib.import_module(names[1])


class OffloadCallback(Offloads, _library().Callback):
    __doc__ = Offloads.__doc__

    def on_train_start(self, trainer, pl_module):
        if self._plans() and not pl_module.automatic_optimization:
            raise ValueError("OffloadCallback: a plan is for one forward and its backward, and "
                             f"{type(pl_module).__name__} has automatic_optimization=False, so "
                             "its step may have several: leave plan= and card= out")
        self._begin(pl_module, trainer.strategy)

    def on_train_end(self, trainer, pl_module):
        self._end()

    def on_exception(self, trainer, pl_module, exception):
        explain(exception, self.plan, pl_module, next(iter(trainer.optimizers), None))
        self.remove()

    def _step(self, strategy, step, *args, **kwargs):
        if is_captured():
            return step(*args, **kwargs)
        module = strategy.lightning_module

        def plan(**request):
            return _plan(strategy, module, args, kwargs, **request)

        optimizers = module.trainer.optimizers
        around = self._around(module, plan, (args, kwargs), optimizers[0] if optimizers else None)
        with around as guard, contextlib.ExitStack() as stack:
            if self.keep_head:
                for handle in head_stays(_with_head(module)):
                    stack.callback(handle.remove)
            if not module.automatic_optimization:
                stack.enter_context(guard.until_backward(again=True))
            guard.open()
            return step(*args, **kwargs)


def _with_head(module):
    """Returns the part of a LightningModule whose output head is known, or the module itself."""
    parts = [module, *module.children()]
    return next((part for part in parts if output_head(part) is not None), module)


def _plan(strategy, module, args, kwargs, *, card, budget=None, policies=None):
    trainer = module.trainer
    accumulated = trainer.accumulate_grad_batches
    request = Request(card, budget, policies, trainer.optimizers[0], None, accumulated,
                      clips=(trainer.gradient_clip_val or 0) > 0)

    def step(fake, *args, **kwargs):
        fake.trainer = trainer
        fake.log = fake.log_dict = _logs_nothing
        with strategy.precision_plugin.train_step_context():
            made = fake.training_step(*args, **kwargs)
        loss = made if isinstance(made, torch.Tensor) else made["loss"]
        torch.autograd.backward(loss / accumulated)

    return plan_step(request, step, module, args, kwargs, calls=False,
                     around=lambda: _apart(module, trainer))


def _logs_nothing(*_, **__):
    pass


@contextlib.contextmanager
def _apart(module, trainer):
    """A context in which the module has no Trainer, because all objects can be reached from it."""
    module.trainer = None
    try:
        yield
    finally:
        module.trainer = trainer
