"""Keeps the frozen weights of a model on the host, or on disk.

    model = get_peft_model(model, LoraConfig(...))
    torch_ferry.stream_weights(model, device="cuda")

While a module is in its forward, its weights are on the device; at other times they have no bytes
there. What autograd saves of a weight keeps no bytes either: it is brought again for the operator
of backward that needs it. So neither checkpoints nor changes to the model are needed, and results
have the bits of the plain model. Copies run beside computing, in the order in which the weights
were used before. The core is shared/state/weights.h.
"""

import contextlib
import os
import weakref

import torch
from torch import nn

from . import _C, four_bit
from .sizes import size

_models = weakref.WeakKeyDictionary()  # model: its StreamedWeights


def stream_weights(model, *, device=None, units=None, keep=0, ahead=None, min_bytes="1MiB",
                   pinned=True, disk=None):
    """Moves the frozen weights of a model to the host, and the rest of it to the device. Returns a
    StreamedWeights.

    model        a torch.nn.Module. Its weights may be on the CPU or on the device. Only those that
                 do not require gradients move, so call this after `requires_grad_(False)` or
                 PEFT's get_peft_model
    device       where the model computes. Default: where its parameters are
    units        modules, or names of modules: a weight is on the device while the forward of its
                 unit runs. Default: the layers in each nn.ModuleList and nn.Sequential. What is in
                 no unit stays on the device
    keep         how many bytes of weights stay on the device, spread evenly over the units
    ahead        how many bytes are brought before they are used. Default: the largest unit
    min_bytes    smaller weights stay on the device
    pinned       uses page-locked host memory (CUDA only)
    disk         a folder: the weights live in a file there, which no crash leaves behind. CPU only

    Raises TypeError if `model` is no module, and ValueError if it has nothing to move, or is
    streamed already."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch.nn.Module; got {type(model).__name__}")
    if model in _models:
        raise ValueError("the weights of this model are on the host already")
    device = _device_of(model) if device is None else torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    least = size(min_bytes, "min_bytes")
    found = _units_of(model, units)
    outside = _outside(model, found)
    _check_bytes(model)
    plan = [(unit, weights) for unit in found if (weights := _weights_of(unit, least, outside))]
    if not plan:
        raise ValueError(
            f"nothing to move: no unit has a frozen weight of {least} bytes or more. Units are "
            f"{', '.join(type(unit).__name__ for unit in found[:3]) or 'not found'}; call this "
            "after requires_grad_(False) or get_peft_model, or name modules in `units`")
    plan = _without_kept(plan, size(keep, "keep"))
    if not plan:
        raise ValueError(f"keep: all weights stay on the device, for they take {keep} or less")
    largest = max(sum(map(_bytes, weights)) for _, weights in plan)
    streamed = StreamedWeights(model, device, largest if ahead is None else size(ahead, "ahead"),
                               pinned, None if disk is None else os.fspath(disk))
    before = _device_of(model)
    try:
        streamed._begin([unit for unit, _ in plan],
                        lambda unit: _weights_of(unit, least, outside))
    except BaseException:
        streamed.remove(before)
        raise
    _models[model] = streamed
    return streamed


def _device_of(model):
    tensor = next(model.parameters(), None)
    return torch.device("cpu") if tensor is None else tensor.device


def _check_bytes(model):
    for name, p in model.named_parameters():
        if p.is_meta or type(p).__name__ == "DTensor" or isinstance(p, nn.UninitializedParameter):
            raise ValueError(f"{name} has no bytes that can be moved: it is a "
                             f"{type(p.data).__name__} on {p.device}")


def _units_of(model, units):
    if units is None:
        lists = [module for module in model.modules()
                 if isinstance(module, (nn.ModuleList, nn.Sequential)) and len(module) > 1]
        inner = {id(child) for each in lists for child in each.modules() if child is not each}
        return [layer for each in lists if id(each) not in inner for layer in each]
    units = [units] if isinstance(units, str) else units
    named = dict(model.named_modules())
    inside = {id(module) for module in named.values()}
    found = []
    for unit in units:
        module = named.get(unit) if isinstance(unit, str) else unit
        if id(module) not in inside:
            raise ValueError(f"units: the model has no module {unit!r}")
        found.append(module)
    return found


def _outside(model, units):
    """Returns the storages that modules outside of all units have parameters in."""
    inside = {id(module) for unit in units for module in unit.modules()}
    return {_storage(p) for module in model.modules() if id(module) not in inside
            for p in module._parameters.values() if p is not None}


def _weights_of(unit, least, outside):
    """Returns the weights of a unit that can move: lists of parameters that share a storage."""
    return [params for params in _by_storage(unit)
            if _storage(params[0]) not in outside and not any(p.requires_grad for p in params) and
            _bytes(params) >= max(least, 1)]


def _by_storage(unit):
    """Returns the parameters of a unit in lists, those that share a storage in one."""
    by_storage = {}
    for p in unit.parameters():
        by_storage.setdefault(_storage(p), []).append(p)
    return list(by_storage.values())


def _storage(p):
    return p.untyped_storage()._cdata


def _bytes(params):
    """Returns the bytes of a weight on the device, where four-bit weights are quantized."""
    first = params[0]
    if four_bit.is_one(first) and not first.bnb_quantized:
        return first.numel() // 2
    return first.untyped_storage().nbytes()


def _without_kept(plan, keep):
    """Leaves out so many bytes of units, evenly spread."""
    total = sum(_bytes(each) for _, weights in plan for each in weights)
    left, kept, seen = [], 0, 0
    for unit, weights in plan:
        bytes_here = sum(map(_bytes, weights))
        seen += bytes_here
        if kept + bytes_here <= keep * seen // max(total, 1):
            kept += bytes_here
        else:
            left.append((unit, weights))
    return left


class StreamedWeights:
    """The weights of a model that are on the host. They stay there until `remove()`."""

    def __init__(self, model, device, ahead, pinned, disk):
        self.model, self.device = weakref.ref(model), device
        self.weights = _C.Weights(device, ahead, pinned, disk)
        self.numbers = {}  # parameter: the number of its weight
        self.hooks = []
        self.handles = []

    def _begin(self, units, weights_of):
        for unit in units:
            four_bit.place(unit, self.device)  # which may make other parameters
            for params in weights_of(unit):
                self._number(params)
        # Modules inside a unit, too: a checkpoint may call the forward of a layer without its
        # hooks, as transformers does.
        for module in {module: None for unit in units for module in unit.modules()}:
            numbers = {self.numbers[p]: None for p in module.parameters() if p in self.numbers}
            if numbers:
                self.hooks.append(_Hooks(self.weights, module, list(numbers)))
        self._move_the_rest()
        self.handles.append(self.model().register_state_dict_post_hook(
            lambda *call: self._put_bytes(*call)))

    def _number(self, params):
        """Moves a weight to the host. Weights that are tied are one."""
        if params[0] not in self.numbers:
            _move(params, self.device)
            number = self.weights.add(params)
            self.numbers.update({p: number for p in params})

    def _move_the_rest(self):
        four_bit.place(self.model(), self.device)
        for module in self.model().modules():
            for p in module._parameters.values():
                if p is not None and p not in self.numbers and p.device != self.device:
                    p.data = p.data.to(self.device)
                    if p.grad is not None:
                        p.grad = p.grad.to(self.device)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = buffer.to(self.device)

    def _put_bytes(self, module, state_dict, prefix, local_metadata):
        """Puts the bytes of weights into a state dict, on the CPU."""
        for name, p in module.named_parameters(remove_duplicate=False):
            if p in self.numbers and prefix + name in state_dict:
                with self._entered(p):
                    state_dict[prefix + name] = p.detach().to("cpu", copy=True)

    @contextlib.contextmanager
    def _entered(self, p):
        self.weights.enter([self.numbers[p]])
        try:
            yield
        finally:
            self.weights.leave([self.numbers[p]])

    def statistics(self):
        """Returns the counts of the copies so far."""
        return self.weights.statistics()

    def remove(self, device=None):
        """Brings all weights back for good: to the device, or another one."""
        for handle in self.handles:
            handle.remove()
        for hooks in self.hooks:
            hooks.remove()
        for p in self.numbers:
            with self._entered(p):
                whole = p.data.to(self.device if device is None else device, copy=True)
            p.data = whole
        for number in set(self.numbers.values()):
            self.weights.remove(number)
        self.numbers.clear()
        _models.pop(self.model(), None)


def _move(params, device):
    """Moves a storage to the device, and the parameters that lie in it."""
    if params[0].device == device:
        return
    storage = params[0].untyped_storage()
    raw = torch.empty(0, dtype=torch.uint8, device=params[0].device).set_(storage).to(device)
    for p in params:
        p.data = torch.empty(0, dtype=p.dtype, device=device).set_(
            raw.untyped_storage(), p.storage_offset(), p.size(), p.stride())


class _Hooks:
    """The hooks of a module: it has its weights while its forward runs."""

    def __init__(self, weights, module, numbers):
        self.weights, self.numbers = weights, numbers
        self.refused = False  # the forward that ends next did not begin
        self.handles = (
            module.register_forward_pre_hook(self.enter, prepend=True),
            module.register_forward_hook(self.leave, always_call=True))

    def enter(self, module, args):
        self.refused = True
        self.weights.enter(self.numbers)
        self.refused = False

    def leave(self, module, args, output):
        if self.refused:
            self.refused = False
        else:
            self.weights.leave(self.numbers)

    def remove(self):
        for handle in self.handles:
            handle.remove()
