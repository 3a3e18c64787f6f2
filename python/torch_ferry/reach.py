"""Finds the objects that a user's objects can reach: what they hold, and what their code names.

Code reaches its closure, its defaults, and those globals of its module that it names. Globals of
installed packages are not followed, because they would lead through the whole library. Python's
modules and classes of packages are not followed for the same reason.
"""

import functools
import gc
import sys
import types

import torch

_NOTHING = (str, bytes, int, float, complex, type(None), torch.Tensor, torch.Generator,
            types.ModuleType, types.CodeType, types.FrameType, types.BuiltinFunctionType)


def reached(*roots):
    """Yields each object that `roots` reach once, tensors and generators included."""
    seen, todo = {}, [*roots]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each  # stays alive, so that no other object gets its id
        yield each
        todo += _next(each)


def modules():
    """Returns the contents of the imported Python modules that belong to no installed package."""
    return [vars(module) for name, module in [*sys.modules.items()]
            if isinstance(module, types.ModuleType) and not _is_packaged(name)]


def _next(each):
    kind = type(each)  # not isinstance, which would ask a proxy for the class of its target
    if issubclass(kind, types.FunctionType):
        cells = [cell for cell in each.__closure__ or () if _is_filled(cell)]
        return [*(cell.cell_contents for cell in cells), *(each.__defaults__ or ()),
                *(each.__kwdefaults__ or {}).values(), each.__dict__, *_named(each)]
    if issubclass(kind, type):
        return () if _is_packaged(each.__module__) else \
            (*vars(each).values(), *each.__bases__)
    if issubclass(kind, _NOTHING):
        return ()
    return gc.get_referents(each)


def _is_filled(cell):
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _named(function):
    if _is_packaged(function.__module__):
        return
    names, todo = set(), [function.__code__]
    while todo:
        code = todo.pop()
        names.update(code.co_names)
        todo += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    around = function.__globals__
    for value in [around[name] for name in names if name in around]:
        if isinstance(value, types.ModuleType) and not _is_packaged(value.__name__):
            yield from [vars(value)[name] for name in names if name in vars(value)]
        else:
            yield value


@functools.cache
def _is_packaged(module):
    """Returns True if the module of this name belongs to an installed package or to Python."""
    place = getattr(sys.modules.get(module), "__file__", None) or ""
    return module == "builtins" or "site-packages" in place or place.startswith(
        (sys.base_prefix + "/lib", str(torch.__path__[0])))
