"""What `checkpoint(policy=…)` may be, brought to what the core takes: the dispatcher's names of ops
with "save", "offload" or "recompute", or a function that returns one of these.

An op may be named as people name it: "mm", "aten::mm", "aten.mm.default", torch.ops.aten.mm, or
an overload of it. What becomes of it may be PyTorch's CheckpointPolicy. Of a policy by op it is
told, once, which of its ops did not run in its first call: a Linear with a bias runs aten::addmm,
and a policy of aten::mm saves nothing there.
"""

import difflib
import functools
import warnings

import torch

_CHOICES = {"save": "save", "keep": "save", "offload": "offload", "recompute": "recompute"}
_tried = set()  # policies by op whose first call was looked at


def understood(policy):
    """As the core takes it: a dict, a function or None; TypeError or ValueError says what is none.
    """
    if policy is None:
        return None
    if isinstance(policy, (list, tuple, set, frozenset)):
        policy = {op: "save" for op in policy}
    if isinstance(policy, dict):
        return {_op(op): _choice(choice, f"of {op}") for op, choice in policy.items()}
    if callable(policy):
        return functools.partial(_asked, policy)
    raise TypeError("policy: expected a dict of ops, a list of ops to save, or a function of an "
                    f"op's name and number; got {policy!r}")


def _asked(policy, op, index):
    return _choice(policy(op, index), f"for {op}, from the policy's function")


def _choice(choice, where):
    if isinstance(choice, bool):
        return "save" if choice else "recompute"
    name = getattr(choice, "name", choice)  # PyTorch's enum
    if isinstance(name, str):
        word = name.lower().removeprefix("must_").removeprefix("prefer_").removeprefix("cpu_")
        if word in _CHOICES:
            return _CHOICES[word]
    raise ValueError('policy: expected "save", "offload", "recompute" or a CheckpointPolicy; got '
                     f"{choice!r} {where}")


def _op(op):
    """The dispatcher's name: of torch.ops.aten.mm.default it is "aten::mm"."""
    if isinstance(op, torch._ops.OpOverloadPacket):
        op = op._qualified_op_name
    elif isinstance(op, torch._ops.OpOverload):
        op = op.name()
    if not isinstance(op, str):
        raise TypeError(f"policy: expected the name of an op or torch.ops.aten.…; got {op!r}")
    return _named(op)


@functools.cache
def _named(text):
    space, colons, name = text.rpartition("::")
    if not colons and "." in text and hasattr(torch.ops, text.split(".")[0]) \
            and text.split(".")[0] == "aten":
        space, _, name = text.partition(".")
    space = space or "aten"
    packet, _, overload = name.partition(".")
    overload = "" if overload == "default" else overload
    known = [schema.overload_name
             for schema in torch._C._jit_get_schemas_for_operator(f"{space}::{packet}")]
    if overload in known or not overload and known:
        return f"{space}::{packet}" + (f".{overload}" if overload else "")
    every = {each.partition(".")[0] for each in torch._C._dispatch_get_all_op_names()}
    near = difflib.get_close_matches(f"{space}::{packet}", sorted(every), n=1)
    raise ValueError(f"policy: there is no op {text!r}"
                     + (f"; did you mean {near[0]!r}?" if near else ""))


def first_call(policy):
    """(the policy, what is to be called after the call): looks at the first call of a policy by op,
    and warns of those ops that did not run in it."""
    if not isinstance(policy, dict):
        return policy, None
    known = frozenset(policy.items())
    if known in _tried:
        return policy, None
    _tried.add(known)
    if "offload" in policy.values() and _hooks_around() is None:
        warnings.warn('policy: "offload" gives a tensor to the guard around the call, and there is '
                      "none: it is kept. Put `with torch_ferry.offload():` around", stacklevel=3)
    ran = {}

    def asked(op, index):
        ran[op] = None
        return policy.get(op, "recompute")

    return asked, lambda: _tell([op for op in policy if op not in ran], list(ran))


def _hooks_around():
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def _tell(missing, ran):
    if not ran:  # a plan, or a call without gradients: nobody asked
        return
    for op in missing:
        base = op.partition(".")[0].rpartition("::")[2]
        alike = [each for each in ran if base in each or each.rpartition("::")[2] in base]
        said = f"{', '.join(alike[:3])} did" if alike else f"what ran: {', '.join(ran[:8])}"
        warnings.warn(f"policy: {op} did not run in this call, so nothing is done for it; {said}",
                      stacklevel=4)
