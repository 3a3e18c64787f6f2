"""Plans the training while it runs: for the GPU that is present, and for the batches that come.

    step = ferry.auto(model, optimizer=optimizer)
    for batch in batches:
        loss = step(**batch)
        loss.backward()

What is called is the step of a training: model and loss. A guard around a block cannot plan it,
because Python cannot look ahead into a block: it would need the loss a second time, as a function.
A function that is called can be captured and then run, so both are the same code.
"""

import contextlib

import torch

from ._recording import trace
from .batches import largest_from_one
from .by_shape import PLANS_MAX, ByShape, opened
from .gpu import check_given, target
from .hf_checkpoint import calls_ours, of_hugging_face, use_checkpoint
from .mismatch import device_of
from .out_of_memory import explain
from .plan import Request


class Auto:
    """What `torch_ferry.auto` returns. Without gradients, as in an evaluation, a call only calls
    the step.

    plan     the plan of the latest step; None if it ran without one
    offload  the `Offload` of the latest step
    card, budget
             what the plans are for; known after the first step
    """

    def __init__(self, model, step=None, *, optimizer="adamw", budget=None, card=None,
                 policies=None, microbatches=1, plans_max=PLANS_MAX, **options):
        self.model, self.card, self.budget = model, card, budget
        self._step = step or _call
        self._planning = (policies, optimizer, None, microbatches)
        if trace() is None:
            check_given(card, budget)
        if card is not None:  # raises now if something is wrong, not in the middle of a training
            Request(card, budget, *self._planning)
        self._shapes = ByShape(plans_max, **options)
        self.offload = self._shapes.default

    @property
    def plan(self):
        return self._shapes.plan

    def plans(self):
        """Returns the plans that are kept."""
        return self._shapes.plans()

    def __call__(self, *batch, **named):
        if trace() is not None or not torch.is_grad_enabled():
            return self._step(self.model, *batch, **named)
        with _checkpoints(self.model):
            self.offload = self._shapes.offload_for(self.model, (batch, named),
                                                    lambda: self._planned(batch, named))
            with self.offload, self:  # the inner one has more to say of an error
                return self._step(self.model, *batch, **named)

    def _planned(self, batch, named):
        from .trainer_step import plan_step
        from .untouched import untouched

        self.card, self.budget = target(self.model, _object(self._planning[1]),
                                        opened((batch, named)), self.card, self.budget)
        return plan_step(Request(self.card, self.budget, *self._planning),
                         _with_backward(self._step), self.model, batch, named, calls=False,
                         around=lambda: untouched(self._step))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        explain(error, self.plan, self.model, _object(self._planning[1]))

    def __str__(self):
        return str(self._shapes)

    def __repr__(self):
        return f"<torch_ferry.Auto of {type(self.model).__name__}>"


def auto(model, step=None, **options):
    """Returns a step that plans itself: call it with each batch, in the place of model and loss.

    The first batch is captured and planned, and runs as planned. A batch of other shapes runs under
    offload of everything; when it comes again, it gets a plan too. The same holds for another mode,
    dropout or autocast. `print(step)` shows each kind of batch; `step.plan` and `step.offload` are
    the latest, `step.plans()` all that are kept. `with step:` around the loop explains an
    out-of-memory error of backward and optimizer too. The first call raises ValueError if card or
    budget are missing, and what `torch_ferry.plan` raises. Later that is a warning.

    model      a torch.nn.Module
    step       a function: `step(model, *batch)` returns the loss, or an object or dict with the
               loss. By default `model(*batch)`, as for a Hugging Face model that gets labels. It
               must use the model that it gets, because a capture calls it with a copy
    optimizer  as in `torch_ferry.plan`. Pass the optimizer itself: if its state exists already, a
               name cannot tell it from other tensors that take memory
    card       as in `torch_ferry.plan`. By default the GPU of the model, by its name; for a model
               on a CPU there is no default
    budget     the memory for the training. By default what is free on that GPU at the first batch,
               and what this process has reserved there, without its other tensors
    plans_max  the number of plans that are kept (8). A batch that came more often replaces the
               least used one. At most four times as many are made in all
    options    policies, microbatches: as in `torch_ferry.plan`; others as in `torch_ferry.offload`
    """
    return Auto(model, step, **options)


def largest_batch(make_batch, model, step=None, *, optimizer="adamw", budget=None, card=None,
                  policies=None, microbatches=1, size_max=4096):
    """Returns the size of the largest batch that fits. Raises `DoesNotFit` if one sample does not.

    The planner is asked for a few sizes; none is run. The largest batch may move or recompute much;
    with policies="keep" it does neither. Other arguments are those of `torch_ferry.auto`.

    make_batch  `make_batch(size)` returns the batch: a tuple of arguments, a mapping, or a tensor
    size_max    the largest size that is tried (4096)"""
    from .trainer_step import capture_step
    from .untouched import untouched

    if isinstance(size_max, bool) or not isinstance(size_max, int) or size_max < 1:
        raise ValueError(f"size_max: expected a number of samples, at least 1; got {size_max!r}")
    card, budget = target(model, _object(optimizer), (), card, budget)
    request = Request(card, budget, policies, optimizer, None, microbatches)

    def captured(size):
        batch, named = _arguments(make_batch(size))
        with _checkpoints(model):
            return capture_step(_with_backward(step or _call), model, batch, named,
                                device_of(model), request.capability, calls=False,
                                around=lambda: untouched(step))

    size = largest_from_one(lambda count: request.least(captured(count)), size_max, budget)
    if size == 0:
        request.planned(lambda: captured(1), 1, None)  # raises DoesNotFit, which says why
    return max(size, 1)


@contextlib.contextmanager
def _checkpoints(model):
    """A context in which a Hugging Face model's gradient checkpointing calls ours, so that a plan
    can choose the layers."""
    end = None
    if of_hugging_face(model) and not calls_ours(model):
        end = use_checkpoint(model)
    try:
        yield
    finally:
        if end is not None:
            end()


def _arguments(batch):
    batch = opened(batch)
    if isinstance(batch, dict):
        return (), batch
    return (tuple(batch), {}) if isinstance(batch, (tuple, list)) else ((batch,), {})


def _call(model, *batch, **named):
    return model(*batch, **named)


def _object(optimizer):
    return None if isinstance(optimizer, (str, type)) else optimizer


def _with_backward(step):
    def run(model, *batch, **named):
        torch.autograd.backward(_loss_of(step(model, *batch, **named)))
    return run


def _loss_of(made):
    if isinstance(made, torch.Tensor):
        return made
    loss = made.get("loss") if isinstance(made, dict) else getattr(made, "loss", None)
    if loss is None:
        raise TypeError("step: expected a loss, or an object or dict with `loss`; got "
                        f"{type(made).__name__}. For a model without a loss pass step=: a function "
                        "step(model, *batch) that returns the loss")
    return loss
