"""Converts `checkpoint(policy=…)` to what the core takes.

The core takes a dict from operators, by the dispatcher's names, to "save", "offload" or
"recompute", or a function that returns one of these. A user may name an operator "mm", "aten::mm",
"aten.mm.default", torch.ops.aten.mm or an overload of it, and may use PyTorch's CheckpointPolicy.

For a policy by operator, one warning names the operators that did not run in the first call: a
Linear with a bias runs aten::addmm, so a policy for aten::mm saves nothing there.
"""

import difflib
import functools
import warnings

import torch

_CHOICES = {"save": "save", "keep": "save", "offload": "offload", "recompute": "recompute"}
_tried = set()  # policies by operator that have had their first call


def understood(policy):
    """Returns the policy as the core takes it: a dict, a function or None. Raises TypeError or
    ValueError if it is no policy."""
    if policy is None:
        return None
    if isinstance(policy, (list, tuple, set, frozenset)):
        policy = {op: "save" for op in policy}
    if isinstance(policy, dict):
        return {_op(op): _choice(choice, f"for {op}") for op, choice in policy.items()}
    if callable(policy):
        return functools.partial(_asked, policy)
    raise TypeError("policy: expected a dict of operators, a list of operators to save, or a "
                    f"function of an operator's name and call number; got {policy!r}")


def _asked(policy, op, index):
    return _choice(policy(op, index), f"for {op} from the policy function")


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
    """Returns the dispatcher's name, such as "aten::mm" for torch.ops.aten.mm.default."""
    if isinstance(op, torch._ops.OpOverloadPacket):
        op = op._qualified_op_name
    elif isinstance(op, torch._ops.OpOverload):
        op = op.name()
    if not isinstance(op, str):
        raise TypeError("policy: expected the name of an operator or torch.ops.aten.…; got "
                        f"{op!r}")
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
    raise ValueError(f"policy: there is no operator {text!r}"
                     + (f"; did you mean {near[0]!r}?" if near else ""))


def first_call(policy):
    """Returns (policy, function). In the first call of a policy by operator, the returned policy
    notes which operators run, and the function, called afterwards, warns about the others."""
    if not isinstance(policy, dict):
        return policy, None
    known = frozenset(policy.items())
    if known in _tried:
        return policy, None
    _tried.add(known)
    if "offload" in policy.values() and _hooks_around() is None:
        warnings.warn('policy: "offload" passes tensors to the guard around the call, and there is '
                      "none: they are kept. Put `with torch_ferry.offload():` around the call",
                      stacklevel=3)
    ran = {}

    def asked(op, index):
        ran[op] = None
        return policy.get(op, "recompute")

    return asked, lambda: _tell([op for op in policy if op not in ran], list(ran))


def _hooks_around():
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def _tell(missing, ran):
    if not ran:  # under a plan, or without gradients, the policy is not asked
        return
    for op in missing:
        base = op.partition(".")[0].rpartition("::")[2]
        alike = [each for each in ran if base in each or each.rpartition("::")[2] in base]
        said = f"{', '.join(alike[:3])} did" if alike else f"what ran: {', '.join(ran[:8])}"
        warnings.warn(f"policy: {op} did not run in this call, so nothing is done for it; {said}",
                      stacklevel=4)
