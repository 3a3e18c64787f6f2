"""Plans a Trainer's own step. Its `training_step` runs once on fake tensors, and is planned.

So users do not have to describe what a Trainer does with the model's output: the number of tokens
that it divides by, a loss of its own (TRL's), autocast, accumulation. Numbers that the Trainer
reads in between, to log them, are 0 if they do not follow from the batch. What it stores of them is
put back afterwards.
"""

import collections
import contextlib
import copy
from unittest import mock

import torch

from . import batches, capture
from .asking import telling_triton
from .mismatch import Conditions, device_of
from .plan import Request
from .recorder import Recorder
from .untouched import untouched
from .values import ValueMode

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_HOLDING = (list, tuple, set, dict)  # a defaultdict is a dict


def plan_trainer_step(trainer, step, model, args, kwargs, *, card, budget=None, policies=None):
    """Returns a `torch_ferry.Plan` of `step(model, *args, **kwargs)`, which runs backward too."""
    request = Request(card, budget, policies, trainer.optimizer, None,
                      trainer.args.gradient_accumulation_steps,
                      clips=(trainer.args.max_grad_norm or 0) > 0)
    return plan_step(request, step, model, args, kwargs, around=lambda: _as_it_was(trainer))


def plan_step(request, step, model, args, kwargs, *, around=contextlib.nullcontext, calls=True):
    """Returns a `torch_ferry.Plan` of `step(model, *args, **kwargs)`, which runs backward too.

    around  makes a context for each run of the step
    calls   True: the planned step begins when the model is called. False: when `step` is called"""
    device = device_of(model)
    conditions = Conditions.of(model, (_opened(args), kwargs), "")
    batch = batches.batch_of((_opened(args), kwargs))

    def captured(size=batch):
        opened, keywords = _opened(args), kwargs
        if size != batch:
            opened, keywords = batches.cut((opened, keywords), batch, size)
        given = [type(one)(each) if _is_batch(one) else each for one, each in zip(args, opened)]
        return capture_step(step, model, given, keywords, device, request.capability,
                            around=around, calls=calls)

    return request.planned(captured, batch, conditions)


def capture_step(step, model, args, kwargs, device, capability, *,
                 around=contextlib.nullcontext, calls=True):
    """Returns the program of `step(model, *args, **kwargs)`, which runs backward too."""
    with around():
        return _captured(model, (args, kwargs), step, device, capability, calls)


def _captured(model, inputs, step, device, capability, calls):
    with telling_triton(), untouched(model, inputs), capture._device(device, capability):
        mode = ValueMode(("zeros",))
        given, kwargs = inputs
        fake, (args, kwargs), moved = capture._to_fakes(mode, model, (_opened(given), kwargs),
                                                        device)
        args = [type(one)(each) if _is_batch(one) else each for one, each in zip(given, args)]
        recorder = Recorder(mode, device, moved)
        with recorder.listening(), _ends(recorder), torch.enable_grad(), \
                _begins(recorder, fake) if calls else contextlib.nullcontext():
            if not calls:
                _begin(recorder, fake, args, kwargs)
            step(fake, *args, **kwargs)
    return recorder.program(type(model).__name__, {})


def _opened(args):
    """Returns the arguments with dicts in place of a tokenizer's batches, because PyTorch's pytree
    functions do not look into these."""
    return tuple(dict(each) if _is_batch(each) else each for each in args)


def _is_batch(each):
    return isinstance(each, collections.UserDict)


def _begin(recorder, module, args, kwargs):
    named = {f"input.{number}": each for number, each in enumerate(args)}
    recorder.begin(module, {**named, **kwargs})


@contextlib.contextmanager
def _begins(recorder, model):
    begun = []

    def begin(module, args, kwargs):
        if not begun and torch.is_grad_enabled():
            begun.append(True)
            _begin(recorder, module, args, kwargs)

    handle = model.register_forward_pre_hook(begin, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _ends(recorder):
    backward = torch.autograd.backward

    def run(tensors, *args, **kwargs):
        if recorder.trace.sink is not recorder.trace.events:
            return backward(tensors, *args, **kwargs)
        return recorder.backward(tensors, lambda: backward(tensors, *args, **kwargs))

    with mock.patch.object(torch.autograd, "backward", run):
        yield


@contextlib.contextmanager
def _as_it_was(trainer):
    """A context that restores what the Trainer counts and logs. It hides the GradScaler, whose
    scale would become a fake tensor."""
    noted = {name: copy.deepcopy(value) for name, value in vars(trainer).items() if _plain(value)}
    with mock.patch.object(trainer.accelerator, "scaler", None):
        try:
            yield
        finally:
            vars(trainer).update(noted)


def _plain(value):
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    return isinstance(value, _PLAIN) or isinstance(value, _HOLDING) and all(map(_plain, value))
