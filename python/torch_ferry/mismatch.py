"""What a PlanMismatch says beside the tensor that differs: what was planned, what runs, and what to
do about it.

A plan names each saved tensor, so one made in another mode, under another autocast, in another
dtype or of another batch does not fit. What runs is read off the error's traceback: the outermost
module that was called, its mode, its parameters and its arguments. Of a plan that was read from a
file nothing is known but its tensors.
"""

import dataclasses
import re

import torch
from torch import nn
from torch.utils._pytree import tree_flatten_with_path

from .op_call import DTYPES

_MANY = 6  # inputs that are told


@dataclasses.dataclass(frozen=True)
class Conditions:
    """What decides on a step's saved tensors beside its code; texts, but for the mode."""

    training: bool
    device: str  # its type: "cpu", "cuda"
    autocast: str  # "": not known
    dtypes: str
    inputs: tuple
    cache: bool  # of keys and values, of Hugging Face's models; None: of others

    @staticmethod
    def of(module, inputs, autocast, device=None):
        """`device`: that of the plan; by default the module's own."""
        tensors = [leaf for leaf in tree_flatten_with_path(inputs)[0]
                   if isinstance(leaf[1], torch.Tensor)]
        device = device or device_of(module)
        dtypes = sorted({_short(each.dtype) for each in module.parameters()})
        return Conditions(module.training, device, autocast, " ".join(dtypes),
                          tuple(f"{_name(path)}{_shown(leaf)}" for path, leaf in tensors),
                          getattr(getattr(module, "config", None), "use_cache", None))

    def __str__(self):
        inputs = ", ".join(self.inputs[:_MANY]) + (", …" if len(self.inputs) > _MANY else "")
        said = ["train mode" if self.training else "eval mode", self.autocast,
                "" if self.cache is None else f"use_cache={self.cache}",
                f"parameters {self.dtypes or 'none'}", f"inputs {inputs or 'none'}",
                f"on {self.device}"]
        return ", ".join(filter(None, said))


def autocast_on(device):
    if not torch.is_autocast_enabled(device):
        return "no autocast"
    return f"autocast to {_short(torch.get_autocast_dtype(device))}"


def device_of(module):
    """The type of the device that a module is on; "cpu" where it has no tensors."""
    first = next(iter([*module.parameters(), *module.buffers()]), None)
    return "cpu" if first is None else first.device.type


def explain(error, planned):
    """Adds to the error's text. `planned`: Conditions, or None."""
    if getattr(error, "explained", False):
        return
    error.explained = True
    frames = list(_frames(error.__traceback__))
    here = _conditions(frames)
    lines = [str(error)]
    if planned is not None:
        lines.append(f"planned: {planned}")
    if here is not None:
        lines.append(f"here: {here}")
    if advice := _advice(str(error), frames, planned, here):
        lines.append(advice)
    error.args = ("\n".join(lines),)


def _frames(traceback):
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _conditions(frames):
    for frame in frames:
        module = frame.f_locals.get("self")
        if frame.f_code.co_name == "_call_impl" and isinstance(module, nn.Module):
            args, kwargs = frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {})
            device = device_of(module)
            # One that was entered within the guard is left by now.
            autocast = autocast_on(device) if torch.is_autocast_enabled(device) else ""
            return Conditions.of(module, (*args, kwargs) if kwargs else args, autocast)
    return None


def _advice(text, frames, planned, here):
    if any(frame.f_code.co_name == "backward" and "torch" in frame.f_code.co_filename
           for frame in frames):
        return "A guard is around one forward, and not around a backward: close it before."
    if planned is not None and here is not None:
        if planned.device != here.device:
            return (f"Kernels of {planned.device} save other tensors than those of {here.device}: "
                    f'give ferry.plan device="{here.device}", or the capture --device '
                    f"{here.device}.")
        if planned.training != here.training:
            return ("Plan the model in the mode in which it runs: model.train() for the training, "
                    "or model.eval() for what is trained without dropout.")
        if planned.dtypes != here.dtypes:
            return "Plan the model in the dtype that it trains in."
        if planned.cache != here.cache:
            return ("A Trainer trains without a cache of keys and values: set "
                    "model.config.use_cache = False before ferry.plan.")
        dtypes = re.search(r"the plan has (\w+) .* the model saves (\w+) ", text)
        autocast = here.autocast and planned.autocast != here.autocast
        if autocast or dtypes and {dtypes[1], dtypes[2]} <= {"f32", "bf16", "f16"} and \
                dtypes[1] != dtypes[2]:
            return "Call ferry.plan under the torch.autocast that the training has."
    if "the plan ends before it" in text:
        return ("One guard is one forward: under gradient accumulation open it for each, and close "
                "it before the next.")
    if "the last forward" in text:
        return ("The loss function is part of the step: call it under the guard as well, as it was "
                "planned.")
    if planned is not None and here is not None and planned.inputs != here.inputs:
        return ('Plan for these inputs, or let other shapes run without the plan: '
                'ferry.run(plan, other_shapes="offload"), or "keep".')
    return ""


def _name(path):
    keys = [str(getattr(key, "key", getattr(key, "idx", key))) for key in path]
    named = [key for key in keys if not key.isdigit()]
    return f"{'.'.join(named)} " if named else ""


def _shown(tensor):
    return f"{_short(tensor.dtype)} {list(tensor.shape)}"


def _short(dtype):
    return DTYPES.get(dtype, str(dtype).removeprefix("torch."))
