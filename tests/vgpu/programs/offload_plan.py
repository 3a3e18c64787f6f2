"""A plan that names options of the allocator, carried out: prints whether its tensor came back."""

import json
import pathlib
import sys
import tempfile

import torch

import torch_ferry as ferry

PLAN = {
    "ferry": "plan", "schema": 1, "program": {"name": "exp", "digest": "0123456789abcdef"},
    "hardware": "h100", "policy": "best", "alloc_conf": sys.argv[1],
    "options": {"bytes_min": 1}, "predicted": {"peak": 1, "reserved": 1, "host": 1, "step_ns": 1},
    "entries": [{"pack": 0, "op": "ExpBackward0", "dtype": "f32", "shape": [1024], "strides": [1],
                 "group": 0, "decision": "offload"}]}

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "exp.plan"
    path.write_text(json.dumps(PLAN))
    offload = ferry.execute(path)
x = torch.ones(1024, device="cuda", requires_grad=True)
for _ in range(2):  # it is said once
    with offload:
        y = x.exp()
    y.sum().backward()
print(offload.statistics().offloaded_count == 2 and bool((x.grad == 2 * y).all()))
