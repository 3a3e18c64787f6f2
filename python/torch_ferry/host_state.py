"""The state of one optimizer on the host: what visits the device when, and what errors leave.

`torch_ferry.optimizer` makes one for each optimizer. Each update runs the optimizer's own step on
one piece alone. A step that raised goes on where it stopped, if its gradients are the same.
"""

import collections
import contextlib
import weakref

import torch

from . import _C
from .pieces import ALIGNED, Piece, copied, dense_stride, is_like, same, span, views_of

# Optimizers that update each element of a parameter by itself, so that pieces have the same bits.
_BY_ELEMENT = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta",
               "Rprop")


class HostState:
    """The state of one optimizer: pieces by parameter, and the wards of each device."""

    def __init__(self, kind, in_backward, ahead, behind, waiting, piece, min_bytes, pinned, disk):
        self.kind, self.in_backward = kind, in_backward
        self.bounds, self.piece_bytes, self.min_bytes = (ahead, behind), piece, min_bytes
        self.waiting_limit = waiting  # None: by the next
        self.watched_bytes = 0        # of all parameters that get gradients
        self.pinned, self.disk = pinned, disk
        self.by_element = kind.__module__.startswith("torch.optim") and kind.__name__ in _BY_ELEMENT
        self.pieces = {}    # parameter: its pieces
        self.wards = {}     # device: _C.Wards
        self.waiting = collections.deque()  # (group, parameter) of gradients that backward left
        self.waiting_bytes = 0
        self.done = {}      # parameter: how many of its pieces this step has updated
        self.failed = {}    # parameter: its gradient in a step that raised, and its version
        self.groups = {}    # id of a group: its values after the updates of this step
        self.handles = []
        self.waits = 0      # open contexts of `accumulate`

    # Making pieces.

    def adopt(self, opt):
        """Takes over the state that the optimizer has, and watches backward if it is to."""
        for group in opt.param_groups:
            for p in group["params"]:
                if p in opt.state:
                    self.put(p, opt.state.pop(p))
            self.watch(opt, group["params"])
        for wards in self.wards.values():
            wards.end_step(True)

    def watch(self, opt, params):
        me = weakref.ref(opt)

        def arrived(p):
            if (owner := me()) is not None and not self.waits:
                self.arrived(owner, p)

        for p in params:
            if p.requires_grad:
                self.watched_bytes += p.numel() * p.element_size()
                self.handles.append(p.register_post_accumulate_grad_hook(arrived))

    def pieces_of(self, p):
        if p not in self.pieces:
            least = max(self.piece_bytes // p.element_size(), 1)
            if not self.by_element or p.numel() <= least or not p.is_contiguous():
                self.pieces[p] = [Piece()]
            else:
                self.pieces[p] = [Piece(begin, min(begin + least, p.numel()))
                                  for begin in range(0, p.numel(), least)]
        return self.pieces[p]

    def wards_of(self, device):
        if device not in self.wards:
            self.wards[device] = _C.Wards(device, *self.bounds, self.pinned, self.disk)
        return self.wards[device]

    # Updates.

    def step(self, opt):
        self.check_failed()
        with self.noting_failure(opt):
            while self.waiting:
                self.update_waiting(opt)
            for group in opt.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        while not self.is_done(p):
                            self.update_next(opt, group, p)
        self.end_step(opt)

    def is_done(self, p):
        return self.done.get(p, 0) == len(self.pieces_of(p))

    @contextlib.contextmanager
    def noting_failure(self, opt):
        """After an error, a step can only be finished with the gradients that it had."""
        try:
            with torch.no_grad():
                yield
        except BaseException:
            self.failed = {p: (weakref.ref(p.grad), p.grad._version)
                           for group in opt.param_groups for p in group["params"]
                           if p.grad is not None}
            raise

    def check_failed(self):
        for p, (gradient, version) in self.failed.items():
            if p.grad is None or gradient() is not p.grad or p.grad._version != version:
                raise RuntimeError(
                    "the model was updated in part: a step of the optimizer raised an error, and "
                    "its gradients have changed since. Call step() again before zero_grad() and "
                    "backward, or load a checkpoint")

    def arrived(self, opt, p):
        """Backward has the gradient of a parameter."""
        if self.in_backward:
            return self.in_hook(opt, p)
        self.bring_ahead(p.device)

    def bring_ahead(self, device):
        if device in self.wards:
            self.wards[device].bring_ahead()

    def in_hook(self, opt, p):
        if torch.distributed.is_available() and torch.distributed.is_initialized() and \
                torch.distributed.get_world_size() > 1:
            raise RuntimeError("in_backward=True: with several ranks, a gradient is not summed yet "
                               "when backward has it; leave in_backward out")
        self.check_failed()
        if p in self.done or any(p is each for _, each in self.waiting):
            raise RuntimeError(
                "in_backward=True: a parameter got a second gradient before optimizer.step(). With "
                "gradient accumulation, put all backwards of a step but the last under "
                "`with optimizer.accumulate():`")
        group = next(group for group in opt.param_groups
                     if any(p is each for each in group["params"]))
        self.waiting.append((group, p))
        self.waiting_bytes += sum(self.bytes_of(p, piece) for piece in self.pieces_of(p))
        self.bring_ahead(p.device)
        with self.noting_failure(opt):
            while self.waiting_bytes > self.waiting_most():
                self.update_waiting(opt)

    def waiting_most(self):
        if self.waiting_limit is None:
            return min(1 << 30, self.watched_bytes // 8)
        return self.waiting_limit

    def update_waiting(self, opt):
        """Updates the next piece of the gradient that waits longest. The last piece frees it."""
        group, p = self.waiting[0]
        if not self.is_done(p):
            self.waiting_bytes -= self.bytes_of(p, self.pieces_of(p)[self.done.get(p, 0)])
            self.update_next(opt, group, p)
        if self.is_done(p):
            self.waiting.popleft()
            p.grad = None

    @staticmethod
    def bytes_of(p, piece):
        count = p.numel() if piece.begin is None else piece.end - piece.begin
        return count * p.element_size()

    def end_step(self, opt):
        for wards in self.wards.values():
            wards.end_step(False)
        for group in opt.param_groups:
            group.update(self.groups.pop(id(group), {}))
        self.begin_anew()

    def begin_anew(self):
        self.waiting.clear()
        self.waiting_bytes = 0
        self.done.clear()
        self.failed.clear()
        self.groups.clear()

    def update_next(self, opt, group, p):
        self.update_piece(opt, group, p, self.pieces_of(p)[self.done.get(p, 0)])

    def update_piece(self, opt, group, p, piece):
        """Runs the optimizer's own step on one piece. If it raises, the piece is as before. A fused
        step is one kernel; others may raise after they have written the parameter."""
        target = piece.of(p.detach()) if piece.begin is not None else p
        if target is not p:
            target.grad = piece.of(p.grad)
        before = None if group.get("fused") else target.detach().clone()
        state = dict(piece.rest)
        rest = {key: copied(value) for key, value in piece.rest.items()}
        wards, views = None, {}
        if piece.ward is not None:
            wards = self.wards_of(p.device)
            views = piece.views(wards.take(piece.ward))
            state.update(views)
        try:
            after, values = self.own_step(opt, group, target, state)
        except BaseException:
            piece.rest = rest
            if before is not None:
                target.detach().copy_(before)
            if wards is not None:
                wards.give_back(piece.ward, True)
            raise
        self.done[p] = self.done.get(p, 0) + 1  # whatever fails now, it is updated
        self.keep_values(group, values)
        self.take_in(p, piece, views, after)

    def own_step(self, opt, group, target, state):
        """Calls the step of the optimizer's class with this parameter alone. Returns the state and
        the values of the group afterwards."""
        groups, states = opt.param_groups, opt.state
        alone = {**group, "params": [target]}
        opt.param_groups, opt.state = [alone], collections.defaultdict(dict)
        if state:
            opt.state[target] = state
        hooks = opt._optimizer_step_pre_hooks, opt._optimizer_step_post_hooks
        opt._optimizer_step_pre_hooks = collections.OrderedDict()
        opt._optimizer_step_post_hooks = collections.OrderedDict()
        try:
            self.kind.step(opt)
            after = opt.state.get(target, {})
        finally:
            opt.param_groups, opt.state = groups, states
            opt._optimizer_step_pre_hooks, opt._optimizer_step_post_hooks = hooks
        return after, {key: value for key, value in alone.items() if key != "params"}

    def keep_values(self, group, values):
        """Some optimizers count steps in their group. Every piece of a step must leave the same
        values there; otherwise they depend on the parameters, and pieces would change them."""
        changed = {key: value for key, value in values.items() if not same(value, group.get(key))}
        known = self.groups.setdefault(id(group), changed)
        if known.keys() != changed.keys() or any(not same(known[key], changed[key])
                                                 for key in known):
            raise TypeError(f"{self.kind.__name__} cannot keep its state on the host: it changes "
                            f"{', '.join(sorted({*known, *changed}))} of a parameter group by what "
                            "its parameters are")

    def take_in(self, p, piece, views, after):
        """Sends the updated state to the host."""
        if piece.ward is None:
            return self.store(p, piece, after)
        if after.keys() != views.keys() | piece.rest.keys():
            raise TypeError(f"{self.kind.__name__} changed the names in its state from "
                            f"{sorted(views.keys() | piece.rest.keys())} to {sorted(after)}")
        for key, view in views.items():
            if after[key] is not view:
                view.copy_(after[key])
        piece.rest = {key: value for key, value in after.items() if key not in views}
        self.wards_of(p.device).written(piece.ward)

    # Storing, saving and loading.

    def store(self, p, piece, state):
        """The first state of a piece: its tensors become one ward, if they are large enough. If
        that fails, they stay where they are, and the next step tries again."""
        piece.rest = dict(state)
        moves = {key: value for key, value in state.items()
                 if isinstance(value, torch.Tensor) and value.device == p.device and
                 value.layout == torch.strided and value.numel() > 1 and
                 type(value) is torch.Tensor}
        if sum(value.numel() * value.element_size() for value in moves.values()) < self.min_bytes:
            return
        places, length = {}, 0
        for key, value in moves.items():
            stride = dense_stride(value)
            places[key] = (value.dtype, tuple(value.shape), stride, length)
            used = span(value.shape, stride) * value.element_size()
            length += -(-used // ALIGNED) * ALIGNED
        if not moves:
            return
        raw = torch.empty(length, dtype=torch.uint8, device=p.device)
        for key, view in views_of(raw, places).items():
            view.copy_(moves[key])
        wards = self.wards_of(p.device)
        piece.ward = wards.add(raw)
        piece.places = places
        piece.rest = {key: value for key, value in state.items() if key not in moves}
        wards.written(piece.ward)

    def whole_state(self, opt):
        """Returns the state of all parameters, on the CPU."""
        whole = collections.defaultdict(dict)
        for group in opt.param_groups:
            for p in group["params"]:
                if p in self.pieces and any(piece.rest or piece.places for piece in self.pieces[p]):
                    whole[p] = self.joined(p)
        for wards in self.wards.values():
            wards.end_step(True)
        return whole

    def joined(self, p):
        parts = [self.on_cpu(p, piece) for piece in self.pieces[p]]
        if len(parts) == 1:
            return parts[0]
        joined = {}
        for key, first in parts[0].items():
            split = key in self.pieces[p][0].places or is_like(first, self.pieces[p][0])
            joined[key] = (torch.cat([part[key] for part in parts]).view(p.shape)
                           if split else first)
        return joined

    def on_cpu(self, p, piece):
        found = {key: value.to("cpu", copy=True) if isinstance(value, torch.Tensor) else value
                 for key, value in piece.rest.items()}
        if piece.ward is not None:
            wards = self.wards_of(p.device)
            views = piece.views(wards.take(piece.ward))
            found.update({key: view.to("cpu", copy=True) for key, view in views.items()})
            del views
            wards.give_back(piece.ward, False)
        return found

    def load(self, opt, groups, states):
        self.begin_anew()
        numbers = [number for group in groups for number in group["params"]]
        params = [p for group in opt.param_groups for p in group["params"]]
        for number, p in zip(numbers, params):
            self.forget(p)
            if number in states:
                self.put(p, {
                    key: self.cast(p, number, groups, key, value)
                    for key, value in states[number].items()})
        for wards in self.wards.values():
            wards.end_step(True)

    @staticmethod
    def cast(p, number, groups, key, value):
        """Gives a loaded value the type that torch would give it, on the parameter's device."""
        if not isinstance(value, torch.Tensor):
            return value
        return torch.optim.Optimizer._process_value_according_to_param_policy(
            p, value, number, groups, key).clone()

    def put(self, p, state):
        """Splits the state of a parameter into its pieces."""
        for piece in self.pieces_of(p):
            part = {}
            for key, value in state.items():
                split = (piece.begin is not None and isinstance(value, torch.Tensor) and
                         value.shape == p.shape)
                part[key] = piece.of(value).clone() if split else copied(value)
            self.store(p, piece, part)

    def forget(self, p):
        for piece in self.pieces.pop(p, []):
            if piece.ward is not None:
                self.wards_of(p.device).remove(piece.ward)

    # Contexts.

    @contextlib.contextmanager
    def accumulating(self):
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1

    @contextlib.contextmanager
    def hooks_around(self, opt, closure):
        """Calls the step hooks of the optimizer once a step, not once a piece."""
        args = () if closure is None else (closure,)
        for hook in opt._optimizer_step_pre_hooks.values():
            hook(opt, args, {})
        yield
        for hook in opt._optimizer_step_post_hooks.values():
            hook(opt, args, {})
