"""Small modules that are captured, and where to look in what comes of it."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

try:
    import torch
    from torch import nn
    WHY_NOT = None
except ImportError as error:
    torch, WHY_NOT = None, f"no torch: {error}"

from torch_ferry import capture as ferry_capture  # noqa: E402


def is_since(version):
    """Whether this torch is of that version, "2.12", or a later one."""
    return torch.__version__ >= version


def module(forward, *parameters):
    """A module with the named parameters and this forward."""
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            for name, shape in parameters:
                self.register_parameter(name, nn.Parameter(torch.zeros(shape)))

        def forward(self, x):
            return forward(self, x)
    return Made()


def captured(made, shape=(4, 4), loss=lambda y: y.sum(), **options):
    return ferry_capture.capture(made, (torch.zeros(shape),), loss, name="test", **options)


def forward_of(program, *keys):
    return [line for line in program.codes[1].statements
            if not keys or any(key in line for key in keys)]


def node_of(program, name):
    return next(line for line in forward_of(program, "node") if line["node"] == name)


def body_of(program, name):
    return program.codes[node_of(program, name)["body"]]


def saved_of(program, name):
    node = node_of(program, name)
    later = [line["slots"] for line in forward_of(program, "save") if line["save"] == node["id"]]
    return node.get("saved", []) + sum(later, [])
