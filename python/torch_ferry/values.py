"""A fake mode that knows the values of small tensors if they follow from the script.

A fake tensor has a shape and no values, and models ask for values: if a mask masks anything, how
long a sequence is, how many tokens an expert gets. Known are `arange`, `zeros`, tensors made of
Python's numbers, real tensors, and what is computed from these. The values are computed beside the
fake tensor, on the CPU, up to `LIMIT` bytes. Parameters and floating-point inputs of the step can
have any values, so they are not known.

If only known values decide the shape of a result, it has that shape, whatever the other arguments
are (shapes.py). If a step asks for an unknown value, the value is assumed, if the user allows that
(assumed.py), and the program says so. Otherwise the step is rejected with its line (asking.py).
"""

import torch
from torch._subclasses.fake_tensor import (DataDependentOutputException,
                                           DynamicOutputShapeException, FakeTensor)
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten
from torch.utils.weak import WeakTensorKeyDictionary

from . import redrawn, shapes
from .asking import asking_line, refused
from .assumed import PICKERS, checked, in_turn, number
from .copies import Cell, Copies, Value
from .fake_cuda import FakeMode
from .known import MASKS, any_value, value_of
from .measured import Measured, measures
from .unwritten import EMPTIES, is_view, leave_unwritten, run_over, unwritten

aten = torch.ops.aten
LIMIT = 16 << 20
# Operators without tensors among their arguments whose results are known. Others without tensors
# make random numbers, or memory that was not written.
FACTORIES = {"arange", "zeros", "ones", "full", "eye", "linspace", "logspace", "scalar_tensor",
             "tril_indices", "triu_indices", "zeros_like", "ones_like", "full_like", "new_zeros",
             "new_ones", "new_full"}
SHAPE_ALONE = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index",
           "_unsafe_index_put"}
FORMULAS = {}  # operator without a formula in PyTorch → a function that makes its results


class ValueMode(FakeMode):
    """A fake mode that knows the values that follow from the script. `assumed` has names of
    ASSUMPTIONS; `stated` is {assumption: the lines that needed it}."""

    def __init__(self, assumed=()):
        super().__init__()
        self.assumed, self.stated, self.measured = frozenset(), {}, Measured()
        self.look_anew()
        self.assume(assumed)

    def look_anew(self):
        """Forgets the values of real tensors, because they may have changed."""
        self.copies, self._twins = Copies(LIMIT), WeakTensorKeyDictionary()

    def assume(self, more):
        self.assumed |= checked(more)

    def stand_for_any(self, tensors):
        """Marks floating-point tensors (parameters, inputs of the step) as unknown."""
        for tensor in tensors:
            if any_value(tensor) and not isinstance(tensor, FakeTensor):
                self.copies.leave_out(tensor)

    def from_tensor(self, tensor, *args, **kwargs):
        fake = super().from_tensor(tensor, *args, **kwargs)
        if isinstance(tensor, torch.nn.Parameter):
            self.stand_for_any([tensor])
        if not hasattr(fake, "_ferry_value") and not tensor.requires_grad:
            fake._ferry_value = self.copies.value(tensor)
        return fake

    def twin(self, tensor):
        """Returns the fake tensor that stands for a real one. A write to it does not change the
        real tensor, and later uses see it."""
        if isinstance(tensor, FakeTensor):
            return tensor
        if tensor not in self._twins:
            if isinstance(tensor, torch.nn.Parameter):
                self.stand_for_any([tensor])
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
            return real[0]  # a Python number
        if real is None and name in PICKERS and "balanced" in self.assumed:
            real = in_turn(name, args, kwargs, LIMIT)
            if real is not None:
                self._state("balanced")
        if name in INDEXED:
            args = self._with_numbers(args)
        if measures(func, (args, kwargs)):
            with self:
                return self.measured.result(func, args, kwargs)
        if name in FORMULAS:
            with self:
                return FORMULAS[name](*args, **kwargs)
        try:
            if name in shapes.UNTOLD:
                raise DynamicOutputShapeException(func)
            result = super().__torch_dispatch__(func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            result, real = self._of_a_value(func, name, (args, kwargs), real, error)
        if name in EMPTIES and isinstance(result, FakeTensor) and _is_small(result):
            with _disable_current_modes():
                leave_unwritten(result)
        elif real is not None:
            self._note(result, real[0], args, kwargs)
        elif func._schema.is_mutable:
            for tensor in _written(func, args, kwargs):
                self._forget(tensor)
        return result

    def _computed(self, func, name, args, kwargs):
        """Returns (result,) computed on real tensors; None if an argument is not known."""
        if torch.Tag.nondeterministic_seeded in func.tags or name in EMPTIES:
            return None
        written = [self._value(tensor) for tensor in _written(func, args, kwargs)]
        if any(value is not None and value.cell.is_window for value in written):
            return None
        first = next(filter(unwritten, written), None)
        leaves, spec = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not tensors and name not in FACTORIES:
            return None
        reals = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                through = is_view(func) or \
                    first is not None and getattr(leaf, "_ferry_value", None) is first
                leaf = self._real(leaf, name, through)
                if leaf is None:
                    return None
            reals.append(torch.device("cpu") if isinstance(leaf, torch.device) else leaf)
        if name in FACTORIES and _elements(args) > LIMIT:
            return None
        real_args, real_kwargs = tree_unflatten(reals, spec)
        try:
            with _disable_current_modes(), torch.no_grad():
                made = func(*real_args, **real_kwargs) if first is None else \
                    run_over(first, lambda: func(*real_args, **real_kwargs))
        except Exception:  # if the call is wrong, it raises on fake tensors as well
            return None
        is_known = first is None or first.cell.known
        return (made,) if is_known and all(map(_is_small, _tensors(made))) else None

    def _value(self, tensor):
        """Returns the `Value` of a fake or real tensor, or None."""
        if isinstance(tensor, FakeTensor):
            return getattr(tensor, "_ferry_value", None)
        return None if tensor.requires_grad else self.copies.value(tensor)

    def _forget(self, tensor):
        if (value := self._value(tensor)) is not None:
            value.cell.known = False

    def _real(self, tensor, name, through):
        """Returns the real tensor with the values of an argument, or None. With `through` also one
        that was not written yet, for a view of it or a write."""
        if not isinstance(tensor, FakeTensor):
            value = self._value(tensor)
            return value.tensor if value is not None and value.cell.known else None
        if name in SHAPE_ALONE and _is_small(tensor):
            return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        value = getattr(tensor, "_ferry_value", None)
        return value.tensor if through and unwritten(value) else value_of(tensor)

    def _note(self, result, real, args, kwargs):
        fakes, reals = tree_flatten(result)[0], tree_flatten(real)[0]
        if len(fakes) != len(reals):
            return
        given = [value for leaf in _tensors((args, kwargs))
                 if (value := self._value(leaf)) is not None]
        for fake, value in zip(fakes, reals):
            if not (isinstance(fake, FakeTensor) and isinstance(value, torch.Tensor)
                    and fake.shape == value.shape and value.device.type != "meta"):
                continue
            at = value.untyped_storage()._cdata
            cell = next((each.cell for each in given
                         if each.tensor.untyped_storage()._cdata == at), None)
            fake._ferry_value = Value(value, cell or Cell())

    def _of_a_value(self, func, name, arguments, real, error):
        """Returns the result of an operator whose result depends on a value, and (known results,)
        or None. Uses known or assumed values, or raises."""
        made = real[0] if real is not None else shapes.made(func, *arguments, value_of)
        if made is not None:
            leaves, spec = tree_flatten(made)
            device = next(_tensors(arguments)).device
            with self:
                fakes = [_empty_as(leaf, device) for leaf in leaves]
            reals = [leaf.tensor if isinstance(leaf, shapes.OnHost) else leaf for leaf in leaves]
            return tree_unflatten(fakes, spec), (reals,)
        if redrawn.is_asked_for():
            return False, None
        if isinstance(error, DataDependentOutputException) and "zeros" in self.assumed:
            self._state("zeros")
            return number(name, next(_tensors(arguments)).dtype), None
        raise refused(name, self._line_of(arguments)) from error

    def _line_of(self, arguments):
        """Returns the line that used a mask which backward asks for, or None."""
        return next((line for tensor in _tensors(arguments)
                     if (line := getattr(tensor, "_ferry_line", None))), None)

    def _with_numbers(self, args):
        """Returns the arguments with index tensors in place of known masks, as kernels take them.
        """
        numbers = []
        for index in args[1]:
            real = value_of(index) if isinstance(index, FakeTensor) else index
            if real is None or real.dtype not in MASKS:
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


def _has_real(arguments):
    return any(_has_real(each) if isinstance(each, (list, tuple)) else
               isinstance(each, torch.Tensor) and not isinstance(each, FakeTensor)
               for each in arguments)


def _tensors(tree):
    return (leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor))


def _empty_as(leaf, device):
    """Returns a fake tensor like `leaf`; call it under the mode."""
    if isinstance(leaf, shapes.OnHost):
        return _empty_as(leaf.tensor, torch.device("cpu"))
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=device)


def _is_small(tensor):
    return tensor.layout == torch.strided and tensor.numel() * tensor.element_size() <= LIMIT


def _elements(args):
    """Returns an upper bound of the number of elements that a factory would make."""
    sizes = args[0] if args and isinstance(args[0], (list, tuple, torch.Size)) else args
    count = 1
    for size in sizes:
        count *= size if isinstance(size, int) and size > 0 else 1
    return count


def _written(func, args, kwargs):
    """Yields the tensors that a call writes."""
    if not func._schema.is_mutable:
        return
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[position] if position < len(args) else kwargs.get(argument.name)
            yield from _tensors(given)
