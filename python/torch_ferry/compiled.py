"""Regions of torch.compile in a capture: they run uncompiled, and the program lists their names.

Inductor fuses the operators that it compiles, and may save fewer tensors for backward. A capture
cannot know how many fewer, so the program's `about` only says that it may be fewer.
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
        if frames is None:  # nothing is compiled yet; later calls of torch.compile see the stance
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
