"""Adds to a PlanMismatch what was planned, what runs, and what to do about it.

A plan names each saved tensor. So a plan for another mode, autocast, dtype or batch does not match.
What runs is read from the error's traceback: the outermost module that was called, its mode, its
parameters and its arguments. If a plan was read from a file, only its tensors are known.
"""

import dataclasses
import inspect
import re

import torch
from torch import nn
from torch.utils._pytree import tree_flatten_with_path

from .op_call import DTYPES

_MANY = 6  # at most so many inputs are listed


@dataclasses.dataclass(frozen=True)
class Conditions:
    """The conditions that decide which tensors a step saves, besides its code."""

    training: bool
    device: str  # its type: "cpu", "cuda"
    autocast: str  # "" if not known
    dtypes: str
    inputs: tuple
    cache: bool  # `use_cache` of a Hugging Face model; None for other models

    @staticmethod
    def of(module, inputs, autocast, device=None):
        """Returns the conditions of a call. `device` is by default that of the module."""
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
    """Returns the type of the module's device; "cpu" if the module has no tensors."""
    first = next(iter([*module.parameters(), *module.buffers()]), None)
    return "cpu" if first is None else first.device.type


def explain(error, planned):
    """Extends the text of the error. `planned` is the Conditions of the plan, or None."""
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
            # An autocast that was entered inside the guard has ended by now.
            autocast = autocast_on(device) if torch.is_autocast_enabled(device) else \
                _autocast_within(frames)
            return Conditions.of(module, (*args, kwargs) if kwargs else args, autocast)
    return None


def _autocast_within(frames):
    """Returns the autocast that a decorated forward entered, as Accelerate's of `bf16=True`."""
    for frame in frames:
        entered = frame.f_locals.get("autocast_instance")
        if frame.f_code.co_name == "decorate_autocast" and entered is not None:
            return f"autocast to {_short(entered.fast_dtype)}"
    return ""


def _advice(text, frames, planned, here):
    if any(frame.f_code.co_name == "backward" and "torch" in frame.f_code.co_filename
           for frame in frames):
        return ("Put a guard around one forward, and not around a backward: close it before "
                "backward begins.")
    if planned is not None and here is not None:
        if planned.device != here.device:
            return (f"Kernels of {planned.device} save other tensors than those of {here.device}: "
                    f'plan with ferry.plan(…, device="{here.device}"), or capture with --device '
                    f"{here.device}.")
        if planned.training != here.training:
            return ("Plan the model in the mode in which it runs: model.train() for the training, "
                    "or model.eval() if it trains without dropout.")
        if planned.dtypes != here.dtypes:
            return "Plan the model in the dtype that it trains in."
        if planned.cache != here.cache:
            return ("A Trainer turns off the cache of keys and values: set "
                    "model.config.use_cache = False before ferry.plan.")
        dtypes = re.search(r"the plan has (\w+) .* the model saves (\w+) ", text)
        autocast = here.autocast and planned.autocast not in ("", here.autocast)
        if autocast or dtypes and {dtypes[1], dtypes[2]} <= {"f32", "bf16", "f16"} and \
                dtypes[1] != dtypes[2]:
            return "Call ferry.plan under the torch.autocast that the training uses."
    if planned is None and here is not None and (advice := _advice_of_file(text, frames, here)):
        return advice
    if "the plan ends before it" in text:
        return ("One guard is one forward: with gradient accumulation, open the guard for each "
                "forward and close it before the next.")
    if "the last forward" in text:
        return ("The loss function is part of the step that was planned: call it under the guard "
                "as well.")
    if planned is not None and here is not None and planned.inputs != here.inputs:
        return ('Plan for these inputs, or run other shapes without the plan: '
                'ferry.execute(plan, other_shapes="offload"), or "keep".')
    return ""


def _advice_of_file(text, frames, here):
    """Returns what may differ from a plan that was read from a file, whose conditions are not
    known. `ferry plan` of a model by its name plans a Trainer with its defaults."""
    modules = [frame.f_locals["self"] for frame in frames
               if isinstance(frame.f_locals.get("self"), nn.Module)]
    checkpoints = any(getattr(each, "gradient_checkpointing", False) is True for each in modules)
    if "(checkpoint): the plan has" in text and not checkpoints:
        return ("The plan checkpoints layers: set gradient_checkpointing=True in the "
                "TrainingArguments, or plan with --no-modules.")
    if checkpoints and "(checkpoint): the plan has" not in text:
        return ("Gradient checkpointing is on here. If the plan was made without it, turn it off, "
                "or plan with --checkpointing.")
    if here.autocast:
        return (f"The step runs under {here.autocast} (bf16=True or fp16=True). A plan of a model "
                "by its name is without it: plan the script (ferry plan train.py).")
    takes_mask = any("attention_mask" in inspect.signature(each.forward).parameters
                     for each in modules[:1])
    if takes_mask and not any(name.startswith("attention_mask ") for name in here.inputs):
        return ("A plan of a model by its name is for batches with attention_mask, as tokenizers "
                "make them: add a mask of ones to the samples, or plan the script (ferry plan "
                "train.py).")
    return ""


def _name(path):
    keys = [str(getattr(key, "key", getattr(key, "idx", key))) for key in path]
    named = [key for key in keys if not key.isdigit()]
    return f"{'.'.join(named)} " if named else ""


def _shown(tensor):
    return f"{_short(tensor.dtype)} {list(tensor.shape)}"


def _short(dtype):
    return DTYPES.get(dtype, str(dtype).removeprefix("torch."))
