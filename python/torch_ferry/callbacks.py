"""What the callbacks for training libraries share: their options, and what stands around each step
of a training. Where a step begins and ends is the library's (`torch_ferry.transformers`,
`torch_ferry.lightning`).
"""

import contextlib
import functools
import logging

from . import _recording
from ._C import PlanMismatch
from .guards import Guard
from .hf_checkpoint import calls_ours, of_hugging_face, use_checkpoint
from .offload import SIZES, offload, run
from .plan import Request
from .sizes import size

_PLANNING = ("budget", "policies")
_OWN_STEP = ("If it is the Trainer's step that differs from what was planned, a loss of its own say: "
             "OffloadCallback(card=…, budget=…) plans that step itself.")


class Offloads:
    """Offloads while a Trainer trains, from the beginning of its training to the end."""

    def __init__(self, plan=None, *, card=None, other_shapes=None, keep_head=None, **options):
        """
        Args:
            plan: what `torch_ferry.plan` returned, or the path of a file of `ferry plan -o`. It
                decides on all that is saved, the head's tensors included, and on which layers are
                recomputed: the gradient checkpointing of a Hugging Face model calls
                `torch_ferry.checkpoint` meanwhile.
            card: plans the Trainer's own first step for this card, and carries that out; with
                budget= and policies= as `torch_ferry.plan` has them. The plan is `callback.plan`
                then.
            other_shapes: of steps of another batch than the plan's: "offload" (the default with a
                plan), "keep" or "raise". `callback.offload.statistics()` counts them.
            keep_head: what the model's output head saves stays (`torch_ferry.heads`); without a
                plan.
            options: of `torch_ferry.offload`; or `offload=`, an Offload that was made already.
        """
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
        planned = self._plans()
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

    def remove(self):
        """The Trainer and the model are as they were before."""
        self._undo.close()

    def _plans(self):
        return self.plan is not None or self._request is not None

    def _begin(self, model, owner):
        """`owner`, of the library's, makes each `training_step` by `_step` from now on."""
        self.remove()  # a training that raised had no end
        if self.offload is not None:
            self.offload.exempt(model)
        owner.training_step = functools.partial(self._step, owner, owner.training_step)
        self._undo.callback(vars(owner).pop, "training_step", None)

    def _end(self):
        self.remove()
        if self.offload is not None and (others := self.offload.statistics().other_forwards):
            logging.getLogger(__name__).warning(
                "%d forwards were not the plan's, for their batches had other shapes: %s", others,
                self.offload.statistics())

    @contextlib.contextmanager
    def _around(self, model, plan_step):
        """A context for one step of the model, which has a `Guard` to be opened. `plan_step` makes
        the plan of this step, of what was asked for."""
        with contextlib.ExitStack() as stack:
            if self._plans() and of_hugging_face(model) and not calls_ours(model):
                stack.callback(use_checkpoint(model))
            if self._request is not None and self.plan is None:
                self.plan = plan_step(**self._request)
                self.offload = run(self.plan, **self._options)
                self.offload.exempt(model)
            try:
                with Guard(self.offload) as guard:
                    yield guard
            except PlanMismatch as error:
                if self._request is None:
                    error.args = (f"{error}\n{_OWN_STEP}",)
                raise


def is_captured():
    """Whether a capture of the script listens, which sees a step as it is without."""
    return _recording.trace() is not None
