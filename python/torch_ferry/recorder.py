"""Records one step, from the first forward to the end of its backward.

Enter `listening` once, around all code that makes tensors of the step, because PyTorch's modes must
nest. All that happens between `forward_of` (or `begin`) and the end of `backward` belongs to the
step. Then `program` makes a program of it.
"""

import contextlib
import gc
import sys
from unittest import mock

import torch
from torch.utils._pytree import tree_flatten_with_path

from . import compiled, kernels, progress, segments
from ._recording import recording
from .asking import asking_line
from .check import check
from .lower import Globals, lower
from .program import CaptureError
from .reads import Reads
from .results import Results
from .trace import ModuleEvent, Trace
from .twins import Twins


class Recorder:
    def __init__(self, mode, device, moves=False):
        """`moves`: real tensors of the script are moved to the device, like the module."""
        self.mode, self.device = mode, device
        self.trace = Trace(mode, device, moves)
        self.fixed = []  # (kind, name, tensor) of the tensors that exist before the step
        self.compiled = compiled.Regions(self.trace)
        self._kept = None
        self._hooks = contextlib.ExitStack()

    @contextlib.contextmanager
    def listening(self):
        trace = self.trace
        saved = torch.autograd.graph.saved_tensors_hooks(trace.pack, trace.unpack)
        with contextlib.ExitStack() as stack:
            for scope in (self.mode, trace, Reads(), Results(trace), self._kernels(),
                          recording(trace), segments.are_recorded(trace),
                          self.compiled.are_eager(), self._no_backward_within(), self._hooks,
                          saved, Twins(trace.fake)):
                stack.enter_context(scope)
            yield

    def _kernels(self):
        return kernels.of_cpu() if self.device == "cpu" else kernels.picked()

    # The methods that record the step.

    def begin(self, module, inputs, others=()):
        """Begins the step: `module` is about to be called. `others` are parameters that it does
        not have."""
        gc.collect()
        if gc.isenabled():  # otherwise tensors in cycles would die at arbitrary times
            gc.disable()
            self._hooks.callback(gc.enable)
        self._hooks.enter_context(values_are_read())
        self.fixed = [(kind, name, self.trace.fake(tensor))  # an input may be a real tensor
                      for kind, name, tensor in fixed_tensors(module, inputs, others)]
        self.trace.begin(tensor for _, _, tensor in self.fixed)
        self._hooks.enter_context(self._module_boundaries(module))

    @contextlib.contextmanager
    def forward_of(self, module, inputs):
        self.begin(module, inputs)
        yield

    def backward(self, loss, run):
        """Records the backward of this loss, which `run` runs. The step ends with it."""
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise CaptureError("expected the loss function to return a tensor of one element")
        if loss.grad_fn is None:
            raise CaptureError("the loss does not depend on anything that requires a gradient")
        self._kept = self.trace.alive()
        self.trace.finish_forward(loss)
        run()
        self.trace.sink = None
        progress.clear()

    def program(self, name, about):
        table = Globals(self.trace)
        for kind, label, tensor in self.fixed:
            table.add(kind, label, self.trace.ref(tensor), tensor.requires_grad and tensor.is_leaf)
        for number, ref in enumerate(self.trace.constants):
            leaf = self.trace.leaves.get(ref.storage)
            table.add("parameter" if leaf else "buffer", f"constant.{number}", leaf or ref,
                      leaf is not None)
        about = {**(about or {}), **self.compiled.about(),
                 **({"checkpoints": "torch.utils.checkpoint"} if self.trace.foreign else {}),
                 **{f"assumed {assumption}": "; ".join(lines)
                    for assumption, lines in sorted(self.mode.stated.items())},
                 "device": self.device, "torch": torch.__version__.split("+")[0]}
        return check(lower(self.trace, table, self._kept, name, about))

    # Contexts around the step.

    @contextlib.contextmanager
    def _no_backward_within(self):
        """A context that rejects a backward before the step's own or inside it, because a capture
        does not see the graph that such a backward makes or frees."""
        run_backward = torch.autograd._engine_run_backward

        def run(*arguments, **keywords):
            if self.trace.sink is not None:
                inside = "a checkpoint that is not torch.utils.checkpoint's" \
                    if self.trace.open else "a gradient of a gradient"
                raise CaptureError(f"{asking_line()} runs a backward inside the step ({inside}), "
                                   "which cannot be captured")
            return run_backward(*arguments, **keywords)

        with mock.patch.object(torch.autograd, "_engine_run_backward", run):
            yield

    @contextlib.contextmanager
    def _module_boundaries(self, module):
        trace = self.trace

        def hook(key, name):
            def record(part, args, *_):
                if trace.sink is not trace.events:
                    return
                if key == "enter" and segments.may_be_called(part):
                    trace.enter_segment(name, args, called=False)
                else:
                    trace.events.append(ModuleEvent(trace.count(), key, name))
            return record

        with contextlib.ExitStack() as stack:
            for name, part in module.named_modules():
                if name:
                    enter, leave = hook("enter", name), hook("leave", name)
                    stack.callback(part.register_forward_pre_hook(enter, prepend=True).remove)
                    stack.callback(part.register_forward_hook(leave).remove)
            yield


@contextlib.contextmanager
def values_are_read():
    """A context in which transformers reads the values of fake tensors, which it usually avoids
    because they may have none."""
    found = sys.modules.get("transformers.utils.import_utils")
    if found is None or not hasattr(found, "is_fake_tensor"):
        yield
        return
    with mock.patch.object(found, "is_fake_tensor", lambda tensor: False):
        yield


def fixed_tensors(module, inputs, others):
    """Returns (kind, name, tensor) of all tensors that exist before the step."""
    fixed = [("parameter", name, tensor)
             for name, tensor in module.named_parameters(remove_duplicate=False)]
    fixed += [("buffer", name, tensor)
              for name, tensor in module.named_buffers(remove_duplicate=False)]
    known = {id(tensor) for _, _, tensor in fixed}
    fixed += [("parameter", f"other.{number}", tensor) for number, tensor in enumerate(others)
              if id(tensor) not in known]
    for path, leaf in tree_flatten_with_path(inputs)[0]:
        if isinstance(leaf, torch.Tensor):
            keys = [str(getattr(key, "key", getattr(key, "idx", key))) for key in path]
            fixed.append(("input", ".".join(keys if isinstance(inputs, dict)
                                            else ["input", *keys]), leaf))
    return fixed
