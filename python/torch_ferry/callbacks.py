"""The common part of the callbacks for training libraries: options, and the code around each step.

`torch_ferry.transformers` and `torch_ferry.lightning` define where a step begins and ends.
"""

import contextlib
import functools
import logging

from . import _recording
from ._C import PlanMismatch
from .by_shape import PLANS_MAX, ByShape, opened
from .gpu import check_given, target
from .guards import Guard
from .hf_checkpoint import calls_ours, of_hugging_face, use_checkpoint
from .offload import SIZES, execute, offload
from .out_of_memory import explain
from .plan import Request
from .sizes import size

_PLANNING = ("budget", "policies")
_AUTO = "auto"  # the value of plan= with which the training is planned while it runs
_OWN_STEP = ("If the Trainer's step differs from the planned step, for example in its loss: "
             "OffloadCallback(card=…, budget=…) plans that step itself.")

_SOME = "%d forwards ran without the plan, because their batches had other shapes: %s"
_NEVER = ('The plan was for none of the %d forwards: their tensors had other shapes. other_shapes='
          '"raise" names the first one: %s')


class Offloads:
    """Offloads saved activations while a Trainer trains, with a plan or without one."""

    _modes_decide = True  # False: the library sets the modes of the modules inside the step

    def __init__(self, plan=None, *, card=None, other_shapes=None, plans_max=None, keep_head=None,
                 **options):
        """
        Args:
            plan: a plan to execute: what `torch_ferry.plan` returned, or the path of a file that
                `ferry plan -o` wrote. It decides for all saved tensors, also those of the output
                head, and which layers are recomputed: during the training the gradient
                checkpointing of a Hugging Face model calls `torch_ferry.checkpoint`.
                "auto" plans the steps of the Trainer while it trains, for the GPU that is present
                and the memory that is free on it when the first batch comes, or for card= and
                budget=. Batches of other shapes are offloaded, and planned when they come again. On
                a CPU both card= and budget= must be given. `print(callback)` shows the plans.
            card: plans the first step of the Trainer for this card and executes that plan. With it,
                budget= and policies= mean the same as in `torch_ferry.plan`. The plan is then in
                `callback.plan`.
            other_shapes: what to do in steps whose batch has other shapes than the plan: "offload"
                (the default with a plan), "keep" or "raise". `callback.offload.statistics()` counts
                these steps.
            plans_max: with plan="auto", the number of plans that are kept (8). A batch that came
                more often replaces the least used one.
            keep_head: True leaves the tensors that the output head saves on the device
                (`torch_ferry.heads`). True by default, and not allowed with a plan.
            options: options of `torch_ferry.offload`; or `offload=`, an Offload made before.

        Raises TypeError if options contradict each other, and ValueError if one cannot be read.
        """
        made = options.pop("offload", None)
        self._shapes, automatic = None, isinstance(plan, str) and plan == _AUTO
        planning = {name: options.pop(name) for name in _PLANNING if name in options}
        if automatic:
            _check_automatic(card, planning, made, other_shapes)
            plan = None
        elif plans_max is not None:
            raise TypeError('plans_max: expected plan="auto" as well')
        if made is not None and (options or plan is not None or card is not None):
            given = sorted([*options, *["plan"] * (plan is not None), *["card"] * bool(card)])
            raise TypeError("offload= already has its options: "
                            f"{', '.join(given)} cannot be given beside it")
        if plan is not None and card is not None:
            raise TypeError("expected plan= (a plan) or card= (a card to plan for); got both")
        if planning and card is None and not automatic:
            raise TypeError(f"{next(iter(planning))}: expected card= as well, the card to plan for")
        self.plan = plan if made is None else made.plan
        self._request = {"card": card, **planning} if automatic or card is not None else None
        if card is not None:  # raises now if something is wrong, not in the middle of a training
            Request(card, planning.get("budget"), planning.get("policies"), None, None, 1)
        for name in set(options) & set(SIZES):
            size(options[name], name)
        planned = self._plans()
        if keep_head and planned:
            raise TypeError("keep_head: a plan decides for the output head as well; remove "
                            "keep_head")
        self.keep_head = not planned if keep_head is None else keep_head
        if automatic:
            self._shapes = ByShape(PLANS_MAX if plans_max is None else plans_max, **options)
        elif planned:
            options["other_shapes"] = other_shapes or "offload"
        elif other_shapes is not None:
            raise TypeError("other_shapes: expected a plan as well; it is for batches whose shapes "
                            "differ from the plan's")
        self._options = options
        self.offload = made
        if made is None and self._request is None:
            self.offload = offload(**options) if plan is None else execute(plan, **options)
        if automatic:
            self.offload = self._shapes.default
        self._undo = contextlib.ExitStack()
        self._forwards = 0

    def remove(self):
        """Puts the Trainer and the model back as they were before."""
        self._undo.close()

    def _plans(self):
        return self.plan is not None or self._request is not None

    def _begin(self, model, owner):
        """From now on `owner.training_step` calls `_step`. `owner` is an object of the library."""
        self.remove()  # needed if the last training raised, because then _end was not called
        if self.offload is not None:
            self.offload.exempt(model)
        owner.training_step = functools.partial(self._step, owner, owner.training_step)
        self._undo.callback(vars(owner).pop, "training_step", None)

    def _end(self):
        self.remove()
        if self._shapes is not None:
            logging.getLogger(__name__).info("%s", self)
        elif self.offload is not None and (others := self.offload.statistics().other_forwards):
            logging.getLogger(__name__).warning(
                _NEVER if others == self._forwards else _SOME, others,
                self.offload.statistics())

    @contextlib.contextmanager
    def _around(self, model, plan_step, inputs=(), optimizer=None):
        """A context for one step of the model; it yields a `Guard` that the caller opens.
        `plan_step` plans this step, with the options of `_request`."""
        self._forwards += 1
        with contextlib.ExitStack() as stack:
            if self._plans() and of_hugging_face(model) and not calls_ours(model):
                stack.callback(use_checkpoint(model))
            if self._shapes is not None:
                self.offload = self._shapes.offload_for(
                    model, inputs, lambda: self._plan_here(model, optimizer, inputs, plan_step),
                    self._modes_decide)
                self.plan = self._shapes.plan
            elif self._request is not None and self.plan is None:
                self.plan = plan_step(**self._request)
                self.offload = execute(self.plan, **self._options)
                self.offload.exempt(model)
            try:
                with Guard(self.offload) as guard:
                    try:
                        yield guard
                    except BaseException as error:
                        explain(error, self.plan, model, optimizer)
                        raise
            except PlanMismatch as error:
                if self._request is None:
                    error.args = (f"{error}\n{_OWN_STEP}",)
                raise

    def _plan_here(self, model, optimizer, inputs, plan_step):
        """Plans a step for the GPU that is present. It is measured once, at the first step."""
        asked = self._request
        asked["card"], asked["budget"] = target(model, optimizer, opened(inputs), asked["card"],
                                                asked.get("budget"))
        return plan_step(**asked)

    def __str__(self):
        return repr(self) if self._shapes is None else str(self._shapes)


def _check_automatic(card, planning, made, other_shapes):
    """Raises the error of options that contradict plan="auto"."""
    if made is not None:
        raise TypeError('offload= already has its options: plan="auto" cannot be given beside it')
    if other_shapes is not None:
        raise TypeError('other_shapes: plan="auto" plans batches of other shapes; remove '
                        "other_shapes")
    if not is_captured():
        check_given(card, planning.get("budget"))


def is_captured():
    """Returns True during a capture of the script, which records the step without Ferry."""
    return _recording.trace() is not None
