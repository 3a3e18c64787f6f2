"""Writes the stream log that `ferry check` reads (formats/STREAM_LOG.md).

Copy this file into your project.

By hand, around the calls of any framework:

    log = Recorder("run.jsonl")
    log.kernel("main", reads=["weights"], writes=["x"])
    log.record("produced", "main")
    log.wait("produced", "side")
    log.kernel("side", reads=["x"], writes=["y"])

Or from PyTorch's CUDA calls, with the hooks of its own stream sanitizer (torch/cuda/_sanitizer.py):

    with record_torch(Recorder("run.jsonl")):
        train_one_step()

A buffer is a name or a pair (address, bytes). `thread` may be passed to every call; without it all
lines belong to one host thread, in the order in which they are written.
"""

import contextlib
import json
import os
import re
import sys
import threading

FACTORY = re.compile(r"aten::(new_.*|.*_like)$")  # these read no more than a shape


class Recorder:
    """One line a call, with the place in the caller's code that it came from."""

    def __init__(self, path, where=True):
        self._file = open(path, "w", encoding="utf-8")
        self._lock = threading.Lock()
        self._where = where

    def close(self):
        self._file.close()

    def write(self, op, **keys):
        line = {"op": op, **{key: value for key, value in keys.items() if value is not None}}
        if self._where and "where" not in line:
            line["where"] = _where()
        with self._lock:
            self._file.write(json.dumps(line) + "\n")

    def stream(self, stream, kind="nonblocking", device=0, **more):
        self.write("stream", id=stream, kind=kind, device=device, **more)

    def kernel(self, stream, reads=(), writes=(), name=None, **more):
        self.write("kernel", stream=stream, reads=_list(reads), writes=_list(writes), name=name,
                   **more)

    def host_func(self, stream, reads=(), writes=(), **more):
        self.write("host_func", stream=stream, reads=_list(reads), writes=_list(writes), **more)

    def copy(self, stream, src, dst, src_kind, dst_kind, sync=False, **more):
        self.write("copy", stream=stream, src=_buffer(src), dst=_buffer(dst), src_kind=src_kind,
                   dst_kind=dst_kind, api="sync" if sync else "async", **more)

    def memset(self, stream, dst, sync=False, **more):
        self.write("memset", stream=stream, dst=_buffer(dst), api="sync" if sync else "async",
                   **more)

    def record(self, event, stream, **more):
        self.write("record", event=event, stream=stream, **more)

    def wait(self, event, stream, **more):
        self.write("wait", event=event, stream=stream, **more)

    def event_sync(self, event, **more):
        self.write("event_sync", event=event, **more)

    def stream_sync(self, stream, **more):
        self.write("stream_sync", stream=stream, **more)

    def device_sync(self, device=0, **more):
        self.write("device_sync", device=device, **more)

    def event_query(self, event, done, **more):
        self.write("event_query", event=event, result="done" if done else "not_ready", **more)

    def stream_query(self, stream, done, **more):
        self.write("stream_query", stream=stream, result="done" if done else "not_ready", **more)

    def event_destroy(self, event, **more):
        self.write("event_destroy", event=event, **more)

    def stream_destroy(self, stream, **more):
        self.write("stream_destroy", stream=stream, **more)

    def alloc(self, address, size, stream, pool="caching", **more):
        self.write("alloc", address=address, bytes=size, stream=stream, pool=pool, **more)

    def free(self, address, size, stream, pool="caching", **more):
        self.write("free", address=address, bytes=size, stream=stream, pool=pool, **more)

    def record_use(self, buffer, stream, **more):
        self.write("record_use", buffer=_buffer(buffer), stream=stream, **more)

    def host_read(self, buffer, **more):
        self.write("host_read", buffer=_buffer(buffer), **more)

    def host_write(self, buffer, **more):
        self.write("host_write", buffer=_buffer(buffer), **more)

    def host_view(self, buffer, **more):
        self.write("host_view", buffer=_buffer(buffer), **more)

    def host_view_end(self, buffer, **more):
        self.write("host_view_end", buffer=_buffer(buffer), **more)

    def release(self, token, **more):
        self.write("release", token=token, **more)

    def acquire(self, token, **more):
        self.write("acquire", token=token, **more)


def _buffer(buffer):
    if isinstance(buffer, str):
        return buffer
    address, size = buffer
    return {"address": address, "bytes": size}


def _list(buffers):
    return [_buffer(buffer) for buffer in buffers]


def _where():
    """The innermost caller outside of this file and of torch."""
    frame = sys._getframe(1)
    inside = (__file__, f"{os.sep}torch{os.sep}", "contextlib.py")
    while frame.f_back and any(part in frame.f_code.co_filename for part in inside):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class TorchHooks:
    """What PyTorch reports, as lines. Streams are handles; 0 is the legacy default stream.

    A block is known from the first op that makes a tensor in it. Not seen: kernels outside of the
    dispatcher, NCCL, CUDA graphs, and queries, which have no hook: a program that polls should call
    Recorder.event_query itself.
    """

    def __init__(self, torch, log):
        self.torch, self.log, self.blocks = torch, log, {}
        log.stream(0, "legacy")

    def on_free(self, address):
        block = self.blocks.pop(address, None)
        if block is not None:
            self.log.free(address, *block)

    def span(self, tensor):
        """(address, bytes) of the storage's part that the tensor may touch; its pool's `alloc`."""
        storage = tensor.untyped_storage()
        base, size = storage.data_ptr(), storage.nbytes()
        if self.on_device(tensor) and base and base not in self.blocks:
            self.blocks[base] = (size, self.current())
            self.log.alloc(base, size, self.current())
        reach = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride())) + 1
        empty = tensor.numel() == 0
        return (tensor.data_ptr(), 0 if empty else reach * tensor.element_size())

    def on_device(self, tensor):
        return tensor.is_cuda

    def current(self):
        return self.torch.cuda.current_stream().cuda_stream

    def kind(self, tensor):
        if self.on_device(tensor):
            return "device"
        return "pinned" if tensor.is_pinned() else "pageable"

    def on_op(self, func, args, kwargs, run):
        schema = func._schema
        name = schema.name
        if name == "aten::record_stream":
            self.log.record_use(self.span(args[0]), args[1].cuda_stream)
            return run()
        inputs = list(zip(schema.arguments, args))
        inputs += [(a, kwargs[a.name]) for a in schema.arguments if a.name in kwargs]
        out = run()
        if name in ("aten::copy_", "aten::_to_copy") and self.on_copy(name, args, kwargs, out):
            return out
        reads, writes = [], []
        for argument, value in inputs:
            alias = argument.alias_info  # none: read; not a write: a view, which touches nothing
            if alias is None and not FACTORY.match(name):
                reads += self.spans(value)
            elif alias is not None and alias.is_write:
                writes += self.spans(value)
        outputs = out if isinstance(out, (list, tuple)) else [out]
        for result, value in zip(schema.returns, outputs):
            made = self.spans(value) if result.alias_info is None else []
            writes += [] if "empty" in name else made
        if reads or writes:
            self.log.kernel(self.current(), reads, writes, name)
        return out

    def spans(self, value):
        """Of the tensors on the device among an op's argument or result."""
        values = value if isinstance(value, (list, tuple)) else [value]
        tensor = self.torch.Tensor
        return [self.span(v) for v in values if isinstance(v, tensor) and self.on_device(v)]

    def on_copy(self, name, args, kwargs, out):
        """Between host and device; within one of them a copy is a kernel."""
        src, dst = (args[1], args[0]) if name == "aten::copy_" else (args[0], out)
        if self.on_device(src) == self.on_device(dst):
            return not self.on_device(src)
        where = args[2:3] if name == "aten::copy_" else []
        lazy = kwargs.get("non_blocking", where[0] if where else False)
        self.log.copy(self.current(), self.span(src), self.span(dst), self.kind(src),
                      self.kind(dst), sync=not lazy, name=name)
        return True


@contextlib.contextmanager
def record_torch(log):
    """Logs what the block does on CUDA. One at a time: PyTorch keeps its callbacks for good."""
    import torch
    from torch.cuda import _gpu_trace as trace
    from torch.utils._python_dispatch import TorchDispatchMode

    hooks, on = TorchHooks(torch, log), [True]

    def when_on(action):
        return lambda *ids: action(*ids) if on[0] else None

    torch._C._activate_gpu_trace()
    trace.register_callback_for_stream_creation(when_on(log.stream))
    trace.register_callback_for_event_record(when_on(log.record))
    trace.register_callback_for_event_wait(when_on(log.wait))
    trace.register_callback_for_event_deletion(when_on(log.event_destroy))
    trace.register_callback_for_event_synchronization(when_on(log.event_sync))
    trace.register_callback_for_stream_synchronization(when_on(log.stream_sync))
    trace.register_callback_for_device_synchronization(
        when_on(lambda: log.device_sync(torch.cuda.current_device())))
    trace.register_callback_for_memory_deallocation(when_on(hooks.on_free))

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            return hooks.on_op(func, args, kwargs, lambda: func(*args, **kwargs))

    try:
        with Mode():
            yield log
    finally:
        on[0] = False
        log.close()
