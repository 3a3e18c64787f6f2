"""Regions of torch.compile in a capture: they run as they are written, and are named.

Inductor fuses what it compiles, and may save less of it for backward: how much less is not told by
a capture, which says so.
"""

import contextlib
import inspect
import sys
from unittest import mock

import torch


class Regions:
    def __init__(self, trace):
        self.trace, self.names = trace, []

    @contextlib.contextmanager
    def are_eager(self):
        frames = sys.modules.get("torch._dynamo.eval_frame")
        if frames is None:  # nothing was compiled, and what will be finds the stance
            import torch._dynamo.eval_frame as frames
        callback_from = frames._callback_from_stance

        def seen(callback):
            if callable(callback) and self.trace.sink is self.trace.events:
                self._name(sys._getframe(1))
            return callback_from(callback)

        with torch.compiler.set_stance("force_eager"), \
                mock.patch.object(frames, "_callback_from_stance", seen):
            yield

    def _name(self, frame):
        function = inspect.unwrap(frame.f_locals.get("fn"))
        owner = getattr(function, "__self__", function)
        name = type(owner).__name__ if isinstance(owner, torch.nn.Module) else \
            getattr(function, "__qualname__", "a function")
        if name not in self.names:
            self.names.append(name)

    def about(self):
        if not self.names:
            return {}
        return {"compiled": ", ".join(self.names) + ": as written; compiled it may save less"}
