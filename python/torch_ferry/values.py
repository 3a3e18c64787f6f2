"""The values of fake tensors, where they are known: a fake mode that computes the small ones.

A fake tensor has a shape and no values, and models ask for values: whether a mask masks anything,
how many tokens an expert was sent. What follows from the script alone is known: `arange`, `zeros`,
a tensor made of Python's numbers, a real tensor of integers, and what is computed of those. It is
computed beside the fake, on the CPU, up to `LIMIT` bytes. Parameters and the step's inputs of
floating point stand for any values, and are not known. Where a step asks for another value it is
refused, with the line that asks; or the capture is told what to assume (`ASSUMPTIONS`), and says so
in the program.
"""

import sys
import traceback
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import (DataDependentOutputException,
                                           DynamicOutputShapeException, FakeTensor)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten
from torch.utils.weak import WeakTensorKeyDictionary

from .copies import Cell, Copies, Value
from .fake_cuda import FakeMode
from .measured import Measured, measures
from .program import CaptureError, ProgramError

aten = torch.ops.aten
LIMIT = 16 << 20
ASSUMPTIONS = {
    "zeros": "a number that the script asks for is 0, and a condition is false",
    "balanced": "topk, argmax, sort and multinomial of what is not known pick each index as often "
                "as any other, in turn: an expert gets its share of the tokens",
}
# Made of no tensor, and known all the same; what else is made of none is drawn, or not written yet.
FACTORIES = {"arange", "zeros", "ones", "full", "eye", "linspace", "logspace", "scalar_tensor",
             "tril_indices", "triu_indices", "zeros_like", "ones_like", "full_like", "new_zeros",
             "new_ones", "new_full"}
SHAPE_ALONE = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index",
           "_unsafe_index_put"}
FORMULAS = {}  # an operator that PyTorch has no formula for → what it makes of fake tensors
PICKERS = {"topk": 1, "sort": 1, "argsort": None, "argmax": None, "multinomial": None}
_TORCH, _HERE = str(Path(torch.__file__).parent), str(Path(__file__).parent)


class ValueAsked(ProgramError):
    """The step asks for a value that a capture does not have."""


def value_of(tensor):
    """The real tensor that a fake one would be, None where that is not known."""
    value = getattr(tensor, "_ferry_value", None)
    if value is None or not value.cell.known or tensor.requires_grad:
        return None
    return value.tensor


def carry(source, target):
    """`target` is a tensor of the same values."""
    value = getattr(source, "_ferry_value", None)
    if value is not None:
        target._ferry_value = value


def take(tensor):
    """It stands for any value."""
    if _any_value(tensor) and getattr(tensor, "_ferry_value", None) is not None:
        tensor._ferry_value.cell.known = False


def _any_value(tensor):
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.requires_grad


class ValueMode(FakeMode):
    """A fake mode that knows what follows from the script. `assumed`: of ASSUMPTIONS; `stated`:
    {assumption: the lines that needed it}."""

    def __init__(self, assumed=()):
        super().__init__()
        self.assumed, self.stated, self.measured = frozenset(), {}, Measured()
        self.look_anew()
        self.assume(assumed)

    def look_anew(self):
        """Real tensors may have other values than when they were last seen."""
        self.copies, self._twins = Copies(LIMIT), WeakTensorKeyDictionary()

    def assume(self, more):
        if unknown := set(more) - set(ASSUMPTIONS):
            raise CaptureError(f"expected an assumption to be one of {', '.join(ASSUMPTIONS)}, "
                               f"not {sorted(unknown)[0]!r}")
        self.assumed |= frozenset(more)

    def from_tensor(self, tensor, *args, **kwargs):
        fake = super().from_tensor(tensor, *args, **kwargs)
        if not hasattr(fake, "_ferry_value") and not _any_value(tensor):
            fake._ferry_value = self.copies.value(tensor)
        return fake

    def twin(self, tensor):
        """The fake tensor that stands for one of Python's. What is done to it is not done to that,
        and is seen by all that comes later."""
        if isinstance(tensor, FakeTensor):
            return tensor
        if tensor not in self._twins:
            with torch._C.DisableTorchFunction(), torch.no_grad(), _disable_current_modes():
                fake = self.from_tensor(tensor.detach())
            self._twins[tensor] = fake.requires_grad_(tensor.requires_grad)
        return self._twins[tensor]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return super().__torch_dispatch__(func, types, args, kwargs)
        name = func._overloadpacket.__name__
        if name != "lift_fresh" and _has_real((*args, *kwargs.values())):
            args, kwargs = tree_map_only(torch.Tensor, self.twin, (args, kwargs))
        real = self._computed(func, name, args, kwargs)
        if real is not None and torch.Tag.data_dependent_output in func.tags:
            return real[0]  # a number of Python's
        if real is None and name in PICKERS and "balanced" in self.assumed:
            real = self._in_turn(name, args, kwargs)
        if name in INDEXED:
            args = self._with_numbers(args)
        if measures(func, (args, kwargs)):
            with self:
                return self.measured.result(func, args, kwargs)
        if name in FORMULAS:
            with self:
                return FORMULAS[name](*args, **kwargs)
        try:
            result = super().__torch_dispatch__(func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            result = self._of_a_value(func, name, args, real, error)
        if real is not None:
            self._note(result, real[0], args, kwargs)
        elif func._schema.is_mutable:
            for tensor in _written(func, args, kwargs):
                self._forget(tensor)
        return result

    def _computed(self, func, name, args, kwargs):
        """(result,) on real tensors; None where an argument is not known."""
        if torch.Tag.nondeterministic_seeded in func.tags:
            return None
        if any(self._is_window(tensor) for tensor in _written(func, args, kwargs)):
            return None
        leaves, spec = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not tensors and name not in FACTORIES:
            return None
        reals = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                leaf = self._real(leaf, name)
                if leaf is None:
                    return None
            reals.append(torch.device("cpu") if isinstance(leaf, torch.device) else leaf)
        if name in FACTORIES and _elements(args) > LIMIT:
            return None
        real_args, real_kwargs = tree_unflatten(reals, spec)
        try:
            with _disable_current_modes(), torch.no_grad():
                made = func(*real_args, **real_kwargs)
        except Exception:  # the fake op says what is wrong, if something is
            return None
        return (made,) if all(map(_is_small, _tensors(made))) else None

    def _value(self, tensor):
        """The `Value` of a fake tensor, or of one of Python's; None where there is none."""
        if isinstance(tensor, FakeTensor):
            return getattr(tensor, "_ferry_value", None)
        return None if _any_value(tensor) else self.copies.value(tensor)

    def _is_window(self, tensor):
        value = self._value(tensor)
        return value is not None and value.cell.is_window

    def _forget(self, tensor):
        if (value := self._value(tensor)) is not None:
            value.cell.known = False

    def _real(self, tensor, name):
        if not isinstance(tensor, FakeTensor):
            fresh = name == "lift_fresh"
            value = self.copies.value(tensor) if fresh else self._value(tensor)
            return value.tensor if value is not None and value.cell.known else None
        if name in SHAPE_ALONE and _is_small(tensor):
            return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        return value_of(tensor)

    def _note(self, result, real, args, kwargs):
        fakes, reals = tree_flatten(result)[0], tree_flatten(real)[0]
        if len(fakes) != len(reals):
            return
        given = [value for leaf in _tensors((args, kwargs))
                 if (value := self._value(leaf)) is not None]
        for fake, value in zip(fakes, reals):
            if not (isinstance(fake, FakeTensor) and isinstance(value, torch.Tensor)
                    and fake.shape == value.shape):
                continue
            at = value.untyped_storage()._cdata
            cell = next((each.cell for each in given
                         if each.tensor.untyped_storage()._cdata == at), None)
            fake._ferry_value = Value(value, cell or Cell())

    def _of_a_value(self, func, name, args, real, error):
        """The result of an op whose result depends on a value: known, assumed, or refused."""
        if real is not None:
            device = next(t.device for t in _tensors(args))
            with self:
                return tree_map(lambda t: torch.empty_strided(
                    t.shape, t.stride(), dtype=t.dtype, device=device)
                    if isinstance(t, torch.Tensor) else t, real[0])
        if isinstance(error, DataDependentOutputException) and "zeros" in self.assumed:
            self._state("zeros")
            dtype = next(_tensors(args)).dtype
            return False if name == "equal" or dtype == torch.bool else \
                0.0 if dtype.is_floating_point else 0
        raise ValueAsked(_refusal(name)) from error

    def _in_turn(self, name, args, kwargs):
        source = args[0]
        dim = (args[2] if len(args) > 2 else kwargs.get("dim", -1)) if name == "topk" else \
            args[1] if len(args) > 1 and name != "multinomial" else kwargs.get("dim", -1)
        if dim is None or dim is True or dim is False or source.dim() == 0:
            return None
        count = source.shape[dim]
        picks = {"topk": args[1] if len(args) > 1 else None, "argmax": 1,
                 "multinomial": args[1] if name == "multinomial" else None}.get(name, count)
        rows = source.numel() // max(count, 1)
        if not isinstance(picks, int) or rows * picks * 8 > LIMIT or not count:
            return None
        with _disable_current_modes():
            indices = (torch.arange(rows * picks, device="cpu") % count).reshape(
                *(size for at, size in enumerate(source.shape) if at != dim % source.dim()), picks)
            indices = indices.movedim(-1, dim % source.dim())
            if name == "argmax" and not (kwargs.get("keepdim") or len(args) > 2 and args[2]):
                indices = indices.squeeze(dim)
        self._state("balanced")
        at = PICKERS[name]
        return (indices,) if at is None else ((None,) * at + (indices,),)

    def _with_numbers(self, args):
        """Masks among the indices as the numbers of what they pick, as kernels take them."""
        numbers = []
        for index in args[1]:
            real = value_of(index) if isinstance(index, FakeTensor) else index
            if real is None or real.dtype not in (torch.bool, torch.uint8):
                numbers.append(index)
                continue
            with _disable_current_modes():
                places = real.nonzero().unbind(1)
            with self:
                for place in places:
                    numbers.append(torch.empty(place.shape, dtype=torch.int64,
                                               device=index.device))
        return (args[0], numbers, *args[2:])

    def _state(self, assumption):
        lines = self.stated.setdefault(assumption, [])
        if (line := asking_line()) not in lines:
            lines.append(line)


class Lists(TorchFunctionMode):
    """`tolist` and what numpy asks for, which read the memory that a fake tensor does not have."""

    READS = {torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.READS and isinstance(args[0], FakeTensor):
            real = value_of(args[0])
            if real is None:
                raise ValueAsked(_refusal(func.__name__))
            args = (real, *args[1:])
            with _disable_current_modes():
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _has_real(arguments):
    return any(_has_real(each) if isinstance(each, (list, tuple)) else
               isinstance(each, torch.Tensor) and not isinstance(each, FakeTensor)
               for each in arguments)


def _tensors(tree):
    return (leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor))


def _is_small(tensor):
    return tensor.layout == torch.strided and tensor.numel() * tensor.element_size() <= LIMIT


def _elements(args):
    """At most how many elements a factory would make."""
    sizes = args[0] if args and isinstance(args[0], (list, tuple, torch.Size)) else args
    count = 1
    for size in sizes:
        count *= size if isinstance(size, int) and size > 0 else 1
    return count


def _written(func, args, kwargs):
    """The tensors that a call writes."""
    if not func._schema.is_mutable:
        return
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[position] if position < len(args) else kwargs.get(argument.name)
            yield from _tensors(given)


def _refusal(name):
    asked = {"_local_scalar_dense": "a tensor's value (item(), or a condition)",
             "equal": "whether two tensors are equal",
             "tolist": "a tensor's values", "numpy": "a tensor's values",
             "__array__": "a tensor's values"}.get(
                 name, f"values that tell the shape of what {name} makes")
    return (f"{asking_line()} asks for {asked}, and a capture has none. Capture with "
            "--assume balanced where an expert or a class is picked, with --assume zeros where it "
            "does not matter; or leave it out of the step")


def asking_line():
    """FILE:LINE of whoever called PyTorch, and of the script, where a package did for it."""
    return _told((f.f_code.co_filename, f.f_lineno) for f, _ in
                 traceback.walk_stack(sys._getframe()))


def where_raised(error):
    """The same of an exception."""
    return _told((f.f_code.co_filename, line) for f, line in
                 reversed([*traceback.walk_tb(error.__traceback__)]))


def _told(places):
    """`places`: (file, line) from the innermost frame outward."""
    places = [place for place in places if not place[0].startswith((_TORCH, _HERE, "<"))]
    own = [place for place in places if not _is_packaged(place[0])]
    told = places[:1] + [place for place in own[:1] if place != places[0]]
    return ", called from ".join(f"{file}:{line}" for file, line in told) or "the step"


def _is_packaged(name):
    return "site-packages" in name or name.startswith(sys.base_prefix + "/lib")
