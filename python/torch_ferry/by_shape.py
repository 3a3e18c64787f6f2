"""Chooses a plan for each step by the shapes of its batch, and makes the plans.

A plan fits one set of saved tensors. So steps are told apart by what decides which tensors they
save: the shapes and dtypes of the batch, the mode of each module, dropout, which parameters train,
and autocast. The first batch gets a plan at once. Other batches run under the default, which
offloads everything, until they have been seen twice; then they get a plan as well.

At most `plans_max` plans are kept. Then a batch that was seen more often than the least used plan
replaces it. At most four times as many plans are made in all, because each takes seconds.
"""

import collections
import logging
import warnings

import torch
from torch import nn
from torch.utils._pytree import tree_flatten_with_path

from .mismatch import Conditions, autocast_on, device_of
from .offload import _PLANNED, execute, offload

PLANS_MAX = 8
_SEEN = 2  # a batch that comes so often gets a plan
_MADE = 4  # times `plans_max`: so many plans are made in all
_COUNTED = 10_000  # so many kinds of steps are counted


def opened(inputs):
    """Returns the inputs with dicts in place of mappings of a library, such as a tokenizer's batch,
    because PyTorch's pytree functions do not look into these."""
    if isinstance(inputs, collections.UserDict):
        return dict(inputs)
    if type(inputs) in (list, tuple):
        return type(inputs)(opened(each) for each in inputs)
    return inputs


def key_of(model, inputs, modes=True):
    """Returns what decides which tensors a step saves, besides the code and the values.

    modes  False: the step sets the modes of the modules itself, so what they are now says nothing
    """
    leaves = []
    for path, leaf in tree_flatten_with_path(opened(inputs))[0]:
        if isinstance(leaf, torch.Tensor):
            leaf = (tuple(leaf.shape), leaf.dtype, leaf.device.type, leaf.requires_grad)
        elif not isinstance(leaf, (bool, str, type(None))):
            leaf = type(leaf)  # a number: it rarely decides, and often changes
        leaves.append((path, leaf))
    modes = modes and tuple(
        (part.training, part.p) if isinstance(part, nn.modules.dropout._DropoutNd)
        else part.training for part in model.modules())
    trained = tuple(each.requires_grad for each in model.parameters())
    return tuple(leaves), modes, trained, autocast_on(device_of(model))


class _Kind:
    """Steps with one key."""

    def __init__(self, shown):
        self.shown, self.forwards, self.plan, self.offload, self.refused = shown, 0, None, None, ""

    def __str__(self):
        ran = self.refused or "offload of everything"
        if self.plan is not None:
            row = self.plan.row
            needs = "" if row["least_bytes"] is None else f", {row['least_bytes'] >> 20} MiB"
            ran = f"plan {self.plan.policy}{needs}"
        return f"{self.forwards} forwards, {ran}: {self.shown}"


class ByShape:
    """The plans of a training. `offload_for` returns the `Offload` for a step.

    default    the Offload of steps without a plan
    plan       the plan of the latest step, or None
    """

    def __init__(self, plans_max=PLANS_MAX, **options):
        if isinstance(plans_max, bool) or not isinstance(plans_max, int) or plans_max < 1:
            raise ValueError(f"plans_max: expected a number of plans, at least 1; got {plans_max}")
        self.plan, self.default = None, offload(**options)
        self._plans_max, self._options, self._made = plans_max, options, 0
        self._kinds = {}

    def offload_for(self, model, inputs, make_plan, modes=True):
        """Returns the Offload for a step. `make_plan()` plans this step; `modes` as in `key_of`.

        An error of the first plan is raised. Later ones are warnings, because they must not end a
        training: the step runs under the default or, if nothing fits, under the plan that needs
        least. If the error is the step's own, that step raises it."""
        if not self._kinds:
            self.default.exempt(model)
        key = key_of(model, inputs, modes)
        if len(self._kinds) >= _COUNTED and key not in self._kinds:
            self._kinds = {each: kind for each, kind in self._kinds.items() if kind.plan}
        kind = self._kinds.get(key)
        if kind is None:
            conditions = Conditions.of(model, opened(inputs), autocast_on(device_of(model)))
            kind = self._kinds[key] = _Kind(str(conditions))
        kind.forwards += 1
        if kind.plan is None and not kind.refused and self._is_due(kind):
            self._make(kind, make_plan)
            if kind.offload is not None:
                kind.offload.exempt(model)
        self.plan = kind.plan
        return self.default if kind.plan is None else kind.offload

    def plans(self):
        """Returns the plans that are kept."""
        return [kind.plan for kind in self._planned()]

    def empty(self):
        """Returns True if no Offload holds anything."""
        return all(each.empty() for each in
                   (self.default, *(kind.offload for kind in self._planned())))

    def _planned(self):
        return [kind for kind in self._kinds.values() if kind.plan is not None]

    def _is_due(self, kind):
        planned = self._planned()
        if self._made == 0:
            return True
        if kind.forwards < _SEEN or self._made >= _MADE * self._plans_max:
            return False
        return len(planned) < self._plans_max or \
            kind.forwards > min(each.forwards for each in planned)

    def _make(self, kind, make_plan):
        first = self._made == 0
        try:
            plan = make_plan()
        except Exception as error:
            if first:
                raise
            self._made += 1
            plan = getattr(error, "plan", None)
            if plan is None:
                kind.refused = "no plan"
            warnings.warn("no plan for a batch of other shapes; it runs under "
                          f"{'the plan that needs least' if plan else 'offload of everything'}: "
                          f"{error}", stacklevel=2)
            if plan is None:
                return
        else:
            self._made += 1
        planned = self._planned()
        if len(planned) >= self._plans_max:
            least = min(planned, key=lambda each: each.forwards)
            least.plan = least.offload = None
        kind.plan = plan
        kind.offload = execute(plan, other_shapes="offload",
                               **{name: value for name, value in self._options.items()
                                  if name not in _PLANNED})
        logging.getLogger(__name__).info("planned %s", kind)

    def __str__(self):
        kinds = sorted(self._kinds.values(), key=lambda kind: -kind.forwards)
        return "\n".join(map(str, kinds)) or "no forward yet"
