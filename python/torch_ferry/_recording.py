"""Holds the trace of the capture that is running, if there is one (`torch_ferry.trace`).

`torch_ferry.checkpoint` and guards ask for it: during a capture they only record or do nothing. It
is a module of its own so that captures and the compiled module do not need each other.
"""

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
