"""The common part of the callbacks for training libraries: options, and the code around each step.

`torch_ferry.transformers` and `torch_ferry.lightning` define where a step begins and ends.
"""

import contextlib
import functools
import logging

from . import _recording
from ._C import PlanMismatch
from .guards import Guard
from .hf_checkpoint import calls_ours, of_hugging_face, use_checkpoint
from .offload import SIZES, execute, offload
from .plan import Request
from .sizes import size

_PLANNING = ("budget", "policies")
_OWN_STEP = ("If the Trainer's step differs from the planned step, for example in its loss: "
             "OffloadCallback(card=…, budget=…) plans that step itself.")


class Offloads:
    """Offloads saved activations while a Trainer trains, with a plan or without one."""

    def __init__(self, plan=None, *, card=None, other_shapes=None, keep_head=None, **options):
        """
        Args:
            plan: a plan to execute: what `torch_ferry.plan` returned, or the path of a file that
                `ferry plan -o` wrote. It decides for all saved tensors, also those of the output
                head, and which layers are recomputed: during the training the gradient
                checkpointing of a Hugging Face model calls `torch_ferry.checkpoint`.
            card: plans the first step of the Trainer for this card and executes that plan. With it,
                budget= and policies= mean the same as in `torch_ferry.plan`. The plan is then in
                `callback.plan`.
            other_shapes: what to do in steps whose batch has other shapes than the plan: "offload"
                (the default with a plan), "keep" or "raise". `callback.offload.statistics()` counts
                these steps.
            keep_head: True leaves the tensors that the output head saves on the device
                (`torch_ferry.heads`). True by default, and not allowed with a plan.
            options: options of `torch_ferry.offload`; or `offload=`, an Offload made before.

        Raises TypeError if options contradict each other, and ValueError for an unknown card or
        policy or an unreadable size.
        """
        made = options.pop("offload", None)
        planning = {name: options.pop(name) for name in _PLANNING if name in options}
        if made is not None and (options or plan is not None or card is not None):
            given = sorted([*options, *["plan"] * (plan is not None), *["card"] * bool(card)])
            raise TypeError("offload= already has its options: "
                            f"{', '.join(given)} cannot be given beside it")
        if plan is not None and card is not None:
            raise TypeError("expected plan= (a plan) or card= (a card to plan for); got both")
        if planning and card is None:
            raise TypeError(f"{next(iter(planning))}: expected card= as well, the card to plan for")
        self.plan = plan if made is None else made.plan
        self._request = None if card is None else {"card": card, **planning}
        if card is not None:  # raises now if something is wrong, not in the middle of a training
            Request(card, planning.get("budget"), planning.get("policies"), None, None, 1)
        for name in set(options) & set(SIZES):
            size(options[name], name)
        planned = self._plans()
        if keep_head and planned:
            raise TypeError("keep_head: a plan decides for the output head as well; remove "
                            "keep_head")
        self.keep_head = not planned if keep_head is None else keep_head
        if planned:
            options["other_shapes"] = other_shapes or "offload"
        elif other_shapes is not None:
            raise TypeError("other_shapes: expected a plan as well; it is for batches whose shapes "
                            "differ from the plan's")
        self._options = options
        self.offload = made
        if made is None and self._request is None:
            self.offload = offload(**options) if plan is None else execute(plan, **options)
        self._undo = contextlib.ExitStack()

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
        if self.offload is not None and (others := self.offload.statistics().other_forwards):
            logging.getLogger(__name__).warning(
                "%d forwards ran without the plan, because their batches had other shapes: %s",
                others, self.offload.statistics())

    @contextlib.contextmanager
    def _around(self, model, plan_step):
        """A context for one step of the model; it yields a `Guard` that the caller opens.
        `plan_step` plans this step, with the options of `_request`."""
        with contextlib.ExitStack() as stack:
            if self._plans() and of_hugging_face(model) and not calls_ours(model):
                stack.callback(use_checkpoint(model))
            if self._request is not None and self.plan is None:
                self.plan = plan_step(**self._request)
                self.offload = execute(self.plan, **self._options)
                self.offload.exempt(model)
            try:
                with Guard(self.offload) as guard:
                    yield guard
            except PlanMismatch as error:
                if self._request is None:
                    error.args = (f"{error}\n{_OWN_STEP}",)
                raise


def is_captured():
    """Returns True during a capture of the script, which records the step without Ferry."""
    return _recording.trace() is not None
