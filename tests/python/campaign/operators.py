"""The calls that the C++ sweep of operators makes (tests/real/sweep), made in a Python process: the
same recorded calls, held to the same list of what is not the same to the bit.

A call's floating-point tensors become leaves that require a gradient. It is made plainly twice and
then in each way; outputs, gradients (without a graph and with one), second-order gradients and the
state of the generator are compared. What the C++ sweep does besides: other dtypes and layouts, and
calls that it draws for overloads that no sample calls.
"""

import collections
import itertools
import pathlib
import tempfile

import torch

import torch_ferry as ferry
from campaign.bits import same
from campaign.memory import fill_new_memory

# From the best, as the C++ sweep has them: an overload is the worst that its calls are.
VERDICTS = ("not called", "not differentiable", "equal", "unstable", "refused", "different")


def read_list(path):
    """Overload: verdict."""
    lines = [line.split(" | ") for line in pathlib.Path(path).read_text().splitlines()
             if line and not line.startswith("#")]
    return {name: verdict for verdict, name, _ in lines}


def read_calls(path):
    """Overload: [(op, arguments)], without those that write `out`, which autograd refuses."""
    calls = collections.defaultdict(list)
    for name, overload, arguments in torch.load(path, weights_only=False):
        op = getattr(getattr(torch.ops.aten, name.removeprefix("aten::")), overload or "default")
        if any(argument.is_out or argument.kwarg_only and argument.alias_info is not None
               for argument in op._schema.arguments):
            continue
        calls[op.name()].append((op, arguments))
    return dict(sorted(calls.items()))


def _mapped(value, function):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return [_mapped(inner, function) for inner in value]
    return value


def _tensors(value):
    found = []
    _mapped(value, found.append)
    return found


def _floats(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def _requiring(tensors):
    return [tensor for tensor in tensors if tensor.requires_grad]


def _seeds(tensors):
    """Not all ones, which hide what is multiplied by them."""
    seeds = []
    for tensor in tensors:
        ramp = torch.arange(tensor.numel(), dtype=torch.float64).remainder(7) / 4 + 0.5
        seed = ramp.reshape(tensor.shape).to(tensor.dtype)
        strided = tensor.layout == torch.strided
        seeds.append(seed if strided else seed.to_sparse(layout=tensor.layout))
    return seeds


def _clone(tensor):
    """With its strides, for there are ops that are given others of the same storage."""
    if tensor.layout != torch.strided or _overlaps(tensor):
        return tensor.clone()
    made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    return made.copy_(tensor)


def _overlaps(tensor):
    """Whether elements may be the same bytes."""
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.size())):
        if size > 1:
            if stride < reach:
                return True
            reach = stride * size
    return False


def _copies(tensors):
    """As they are now: what is written later is not seen."""
    return [None if tensor is None else tensor.detach().clone() for tensor in tensors]


class _Step:
    """One call in a training step, and all that it gives: parts, then what was raised."""

    def __init__(self, op, arguments, followed, way, alone=None):
        fill_new_memory(next(_bytes))
        torch.manual_seed(7)
        numbers = itertools.count()
        self.leaves, self.parts, self.error = [], [], ""

        def leaf(tensor):
            return self._leaf(tensor, alone in (None, next(numbers)))
        given = _mapped(arguments, leaf)
        try:
            way(lambda: self._forward(op, given, followed), self._differentiate)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
        finally:
            fill_new_memory(0)
        self.generator = torch.get_rng_state()

    def _leaf(self, tensor, wanted):
        self.leaves.append(_clone(tensor.detach()).requires_grad_(wanted and _floats(tensor)))
        return self.leaves[-1]

    def _forward(self, op, given, followed):
        # Copies, made within the segment: a leaf is not written in place.
        given = _mapped(given, _clone)
        schema = op._schema.arguments
        named = {argument.name: value for argument, value in zip(schema, given)
                 if argument.kwarg_only}
        outputs = op(*[value for argument, value in zip(schema, given)
                       if not argument.kwarg_only], **named)
        outputs = _tensors([outputs])
        if followed:  # by ops that save what the call returned, and a function of it
            outputs = [(x * x).sin() * x if _floats(x) and x.layout == torch.strided else x
                       for x in outputs]
        return outputs

    def _differentiate(self, outputs):
        self.parts.append(_copies(outputs))
        roots, wanted = _requiring(outputs), _requiring(self.leaves)
        self.differentiable = bool(roots)
        if not roots:
            return
        for graph in (False, True):
            first = torch.autograd.grad(roots, wanted, _seeds(roots), retain_graph=True,
                                        create_graph=graph, allow_unused=True)
            self.parts.append(_copies(first))
        again = _requiring([x for x in first if x is not None])
        if again:
            self.parts.append(_copies(torch.autograd.grad(again, wanted, _seeds(again),
                                                          allow_unused=True)))


_bytes = itertools.cycle(range(1, 251))
PARTS = ("the outputs", "a gradient", "a gradient with a graph", "a second-order gradient")


def difference(plain, other):
    """What differs, in words; none where nothing does."""
    for part, (want, got) in enumerate(zip(plain.parts, other.parts)):
        if len(want) != len(got) or not all(map(same, want, got)):
            return PARTS[part]
    if len(plain.parts) != len(other.parts) or bool(plain.error) != bool(other.error):
        return f"raises {other.error or 'nothing'}, and plain {plain.error or 'nothing'}"
    return None if torch.equal(plain.generator, other.generator) else "the generator"


def plainly(forward, then):
    then(forward())


def _offloaded(**options):
    offload = ferry.offload(min_bytes=1, **options)

    def way(forward, then):
        with offload:
            then(forward())
    return way, offload


def _checkpointed(forward, then):
    then(ferry.checkpoint(forward))


class Sweep:
    """All calls, or those of every `stride`th overload."""

    def __init__(self, calls, listed, stride=1):
        self.calls = dict(itertools.islice(calls.items(), 0, None, stride))
        self.listed, self.whole = listed, stride == 1
        self.verdicts, self.faults, self.steps = collections.Counter(), [], 0

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            made = {"offload, window 0": _offloaded(window=0), "offload": _offloaded(),
                    "offload to disk": _offloaded(window=0, disk=folder)}
            ways = {name: way for name, (way, _) in made.items()} | {"checkpoint": _checkpointed}
            for name, calls in self.calls.items():
                self._judge(name, *max((self._try(*call, ways) for call in calls),
                                       key=lambda found: VERDICTS.index(found[0])))
            self.faults += [f"{name}: something is left" for name, (_, offload) in made.items()
                            if not offload.empty()]
        return self

    def _try(self, op, arguments, ways):
        worst = "not called", ""
        tensors = len(_tensors(arguments))
        for followed in (False, True):
            # Which arguments may require a gradient is not in a schema. All; else one alone.
            for alone in (None, *range(tensors)):
                plain = _Step(op, arguments, followed, plainly, alone)
                if plain.parts and plain.differentiable:
                    break
                if plain.parts and worst[0] == "not called":
                    worst = "not differentiable", ""
            else:
                return worst
            found = self._compare(plain, ways, lambda way: _Step(op, arguments, followed, way,
                                                                 alone))
            worst = max(worst, found, key=lambda each: VERDICTS.index(each[0]))
        return worst

    def _compare(self, plain, ways, step):
        if difference(plain, step(plainly)):
            return "unstable", "plain runs differ"
        for name, way in ways.items():
            self.steps += 1
            differs = difference(plain, step(way))
            if differs:
                stable = not any(difference(plain, step(plainly)) for _ in range(8))
                return "different" if stable else "unstable", f"{name}: {differs}"
        return "equal", ""

    def _judge(self, name, verdict, why):
        self.verdicts[verdict] += 1
        if verdict in ("unstable", "refused", "different"):
            may_be = self.listed.get(name)
            self.verdicts["listed"] += may_be is not None
            if verdict != "refused" and may_be not in (verdict, "unstable"):
                self.faults.append(f"{name} is {verdict}, and not listed so: {why}")

    def text(self):
        counts = ", ".join(f"{self.verdicts[each]} {each}" for each in (*VERDICTS, "listed"))
        return f"{len(self.calls)} overloads: {counts}; {self.steps} steps compared with plain ones"
