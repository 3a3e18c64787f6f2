"""Captures a model of many equal layers with a few of them, and repeats these in the program.

Capturing 32 layers takes eight times as long as capturing four, and says the same. A list of layers
(`nn.ModuleList`, `nn.Sequential`) whose layers are alike, or alike in turn (A A B A A B), keeps its
first two groups, one more, and the last. `torch_ferry.repeat` repeats the second to last.

Layers are alike if they are of the same classes, with the same parameters and the same settings,
apart from their number, and if lists of the model's configuration say the same of them. If the
captured layers turn out to differ, `NotAlike` is raised, and the model has to be captured whole.
"""

import torch
from torch import nn

from .capture import capture, fake_mode
from .repeat import NotAlike, repeated

# Groups that are kept: the first, which makes views that the later ones share, the one before the
# repeated one, that one, and the last.
_KEPT = 4
# Settings of a layer that only say which of the layers it is.
_NUMBERS = ("layer_idx", "layer_id", "layer_number", "layer_index", "block_idx", "idx", "index")


def captured(make, loss_fn, name, capability=None):
    """Returns the program of a step, captured with few layers if they are alike.

    make  a function that returns (module, inputs, about). It is called under a fake mode, and once
          more if the model has to be captured whole

    The other arguments are those of `torch_ferry.capture.capture`."""
    def step(few):
        with fake_mode():
            model, inputs, about = make()
            cut = Cut(model) if few else None
        program = capture(model.train(), inputs, loss_fn, name=name, about=about,
                          assume=("balanced",), capability=capability)
        return cut.program(program) if few else program

    try:
        return step(few=True)
    except (NotAlike, IndexError):  # a model may count its layers by its configuration
        return step(few=False)


class Cut:
    """Removes equal layers from a model in place. `program` puts them back into its program."""

    def __init__(self, model):
        self.model = model
        self.lists = []  # (name, first layer of the repeated group, layers in a group, times)
        for name, layers in [*model.named_modules()]:
            inside = any(name.startswith(other + ".") for other, *_ in self.lists)
            if isinstance(layers, (nn.ModuleList, nn.Sequential)) and not inside:
                self._cut(name, layers)

    def _cut(self, name, layers):
        said = _said_of_each(self.model, len(layers))
        begin, period, times = _longest([(_kind(layer), said[at])
                                         for at, layer in enumerate(layers)])
        first, removed = begin + period, times * period
        # A model that reads the configuration by the place in the list reads it for the later
        # layers as well, whose places change.
        moved = range(first + period + removed, len(layers))
        if times == 0 or name == "" or any(said[at] != said[at - removed] for at in moved):
            return
        for _ in range(removed):
            del layers[first + period]
        self.lists.append((name, first, period, times))

    def program(self, program):
        """Returns the program of the whole model. Raises `torch_ferry.repeat.NotAlike`."""
        for each in self.lists:
            program = repeated(program, *each)
        return program


def _said_of_each(model, count):
    """Returns what the configurations say of each of `count` layers, in lists of that length."""
    configs = {id(config): config for module in model.modules()
               if hasattr(config := getattr(module, "config", None), "__dict__")}
    lists = [value for config in configs.values() for value in vars(config).values()
             if isinstance(value, (list, tuple)) and len(value) == count]
    return [tuple(repr(each[at]) for each in lists) for at in range(count)]


def _kind(module):
    """Returns what decides the statements of a layer."""
    settings = tuple(sorted(
        (name, repr(value)) for name, value in vars(module).items()
        if name not in _NUMBERS and isinstance(value, (bool, int, float, str, tuple, torch.dtype))))
    tensors = tuple((name, tuple(tensor.shape), tensor.dtype, tensor.requires_grad)
                    for name, tensor in (*module.named_parameters(recurse=False),
                                         *module.named_buffers(recurse=False)))
    parts = tuple((name, _kind(part)) for name, part in module.named_children())
    return type(module), settings, tensors, parts


def _longest(kinds):
    """Returns (first layer, layers in a group, groups that can be removed) of the stretch of alike
    groups from which most layers can be removed. The first layer is that of the second group."""
    best = (0, 1, 0)
    for period in range(1, len(kinds) // (_KEPT + 1) + 1):
        begin = 0
        while begin + period < len(kinds):
            end = begin + period
            while end < len(kinds) and kinds[end] == kinds[end - period]:
                end += 1
            first = begin + period
            times = (end - begin) // period - _KEPT
            if times * period > best[1] * best[2]:
                best = (first, period, times)
            begin = max(end - period, begin) + 1
    return best
