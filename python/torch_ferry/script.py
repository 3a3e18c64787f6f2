"""Captures the first training step of an unmodified script, `python train.py`, on fake tensors.

The script runs as on a GPU and computes nothing. The step begins with the first call of a module in
grad mode, and ends with the backward of its loss. The script goes on to the first step of an
optimizer, and is ended there. The program notes the optimizer and the number of backwards until
then. Numbers that the script asks for outside the step, for example to print them, are 0. If the
script branches on such a number, its real step may be another one. The program lists the lines that
asked.

Only this process is captured. A DataLoader has no workers here.
"""

import contextlib
import os
import runpy
import sys
from unittest import mock

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data import DataLoader

from . import reach
from .asking import asking_line, telling_triton
from .optimizers import implementation_of
from .program import CaptureError
from .recorder import Recorder
from .untouched import untouched
from .values import ValueMode

OPTIMIZERS = {"Adam": "adam", "AdamW": "adamw", "SGD": "sgd"}


class OnTheCpu(CaptureError):
    """The script trains on the CPU. `ferry plan` has cards alone, so only the command
    `torch_ferry.capture` gives the further advice."""

    device_advice = ", or use --device cpu"


class _Done(BaseException):
    """Ends the script, because everything about its step is known."""


class Script:
    """One run of a script. After `run`, `program` returns the program, and `advice` the command
    that plans it."""

    def __init__(self, path, arguments, device, assume):
        self.path, self.arguments = path, arguments
        self.mode = ValueMode(assume)
        self.recorder = Recorder(self.mode, device)
        self.optimizers, self.optimizer, self.implementation = [], None, None
        self.backwards = 0
        self.clips, self.scales = False, False  # True if gradients are, before the optimizer's step
        self._asked = self.mode.assumed
        self._depth = 0

    def run(self):
        self.mode.assumed |= {"zeros"}
        with telling_triton(), untouched(*reach.modules()), self.recorder.listening(), \
                self._around_modules(), self._around_backward(), self._around_optimizers(), \
                self._as_a_program(), contextlib.suppress(_Done):
            runpy.run_path(self.path, run_name="__main__")
        if not self.backwards:
            raise CaptureError(f"{self.path} ended without a backward from the output of a module "
                               "in train mode")
        return self

    def program(self, name):
        about = {"script": " ".join([os.path.basename(self.path), *self.arguments])}
        if self.optimizer:
            about["optimizer"] = f"{self.optimizer} {self.implementation}"
        about["microbatches"] = str(self.backwards)
        if self.clips:
            about["clipped"] = "clip_grad_norm_"
        if self.scales:
            about["scaled"] = "GradScaler"
        return self.recorder.program(name, about)

    def advice(self, path):
        """Returns the command that plans the step with the script's optimizer and options."""
        words = ["ferry plan", path]
        if self.optimizer in ("adam", "adamw", "sgd", "momentum"):
            words += ["--optimizer", self.optimizer, "--optimizer-implementation",
                      self.implementation]
        elif self.optimizer is None:
            words += ["--optimizer none"]
        if self.backwards > 1:
            words += ["--microbatches", str(self.backwards)]
        words += ["--clip-grad-norm"] * self.clips + ["--grad-scaler"] * self.scales
        return " ".join([*words, "--card CARD"])

    # Contexts that replace functions of PyTorch.

    @contextlib.contextmanager
    def _around_modules(self):
        call = nn.Module.__call__
        script = self

        def called(module, *args, **kwargs):
            trace = script.recorder.trace
            first = not script._depth and not script.backwards and trace.sink is None
            if first and torch.is_grad_enabled() and script._trains(module):
                script._begin(module, args, kwargs)
            script._depth += 1
            try:
                return call(module, *args, **kwargs)
            finally:
                script._depth -= 1

        with mock.patch.object(nn.Module, "__call__", called):
            yield

    @staticmethod
    def _trains(module):
        return module.training and any(p.requires_grad for p in module.parameters())

    def _begin(self, module, args, kwargs):
        if self.recorder.device != "cpu" and \
                all(parameter.device.type == "cpu" for parameter in module.parameters()):
            raise OnTheCpu(
                f"{asking_line()} calls a model that is on the CPU, and the capture is for a GPU: "
                'put the model and its batch on "cuda" (no GPU is needed)')
        self.mode.assumed = self._asked
        others = [p for made in self.optimizers for group in made.param_groups
                  for p in group["params"]]
        inputs = {**{f"input.{at}": each for at, each in enumerate(args)}, **kwargs}
        self.recorder.begin(module, inputs, others)

    @contextlib.contextmanager
    def _around_backward(self):
        backward = torch.autograd.backward

        def run(tensors, *args, **kwargs):
            if self.recorder.trace.sink is self.recorder.trace.events:
                tensors = tensors if isinstance(tensors, torch.Tensor) else [*tensors]
                loss = tensors[0] if isinstance(tensors, list) and len(tensors) == 1 else tensors
                self.recorder.backward(loss, lambda: backward(tensors, *args, **kwargs))
                self.mode.assumed |= {"zeros"}
                self.backwards = 1
                return
            self.backwards += self.backwards > 0
            backward(tensors, *args, **kwargs)

        with mock.patch.object(torch.autograd, "backward", run):
            yield

    @contextlib.contextmanager
    def _around_optimizers(self):
        made = torch.optim.Optimizer.__init__

        def init(optimizer, *args, **kwargs):
            made(optimizer, *args, **kwargs)
            self.optimizers.append(optimizer)

        def stepping(optimizer, args, kwargs):
            if self.backwards:
                self._note(optimizer)
                raise _Done

        clip, scale = nn.utils.clip_grad_norm_, torch.amp.GradScaler.step

        def clipped(*args, **kwargs):
            self.clips |= self.backwards > 0
            return clip(*args, **kwargs)

        def scaled(scaler, *args, **kwargs):
            self.scales |= scaler.is_enabled()
            return scale(scaler, *args, **kwargs)

        handle = register_optimizer_step_pre_hook(stepping)
        try:
            with mock.patch.object(torch.optim.Optimizer, "__init__", init), \
                    mock.patch.object(nn.utils, "clip_grad_norm_", clipped), \
                    mock.patch.object(torch.amp.GradScaler, "step", scaled):
                yield
        finally:
            handle.remove()

    def _note(self, optimizer):
        settings = {**optimizer.defaults, **optimizer.param_groups[0]}
        self.optimizer = OPTIMIZERS.get(type(optimizer).__name__, type(optimizer).__name__)
        if self.optimizer == "sgd" and settings.get("momentum"):
            self.optimizer = "momentum"
        self.implementation = implementation_of(settings)

    @contextlib.contextmanager
    def _as_a_program(self):
        """A context with `sys.argv` and `sys.path` as in `python SCRIPT`, and without workers in
        DataLoaders."""
        init = DataLoader.__init__

        def alone(loader, *args, **kwargs):
            args = args[:5] + (0,) + args[6:] if len(args) > 5 else args
            for name in ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory",
                         "multiprocessing_context", "timeout"):
                kwargs.pop(name, None)
            init(loader, *args, **kwargs)

        folder = os.path.dirname(os.path.abspath(self.path))
        with mock.patch.object(sys, "argv", [self.path, *self.arguments]), \
                mock.patch.object(sys, "path", [folder, *sys.path[1:]]), \
                mock.patch.object(DataLoader, "__init__", alone):
            yield
