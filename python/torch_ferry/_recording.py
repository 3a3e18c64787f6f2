"""The capture that is under way, where one is: it takes down calls of `torch_ferry.checkpoint`, and
runs them as they are (`torch_ferry.trace`). By itself, for either side does without the other."""

import contextlib
import contextvars

_trace = contextvars.ContextVar("torch_ferry.capture", default=None)
trace = _trace.get


@contextlib.contextmanager
def recording(by):
    token = _trace.set(by)
    try:
        yield
    finally:
        _trace.reset(token)
