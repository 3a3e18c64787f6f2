"""Old names in Python. Each works for one more version, and a FutureWarning gives the new name."""

import functools
import warnings


def _warn(old, now, levels):
    warnings.warn(f"torch_ferry: {old} is called {now} now; the old name goes with the next "
                  "version", FutureWarning, stacklevel=levels + 2)


def renamed(now):
    """Returns a decorator for a function under its old name. A call warns that it is `now`."""
    def decorate(function):
        @functools.wraps(function)
        def warned(*args, **kwargs):
            _warn(function.__name__, now, 1)
            return function(*args, **kwargs)
        warned.__doc__ = f"The old name of `{now}`."
        return warned
    return decorate


def renamed_option(given, old, now, value):
    """Returns the value of the option `now`, which may have been passed as `old`.

    `given` has the keyword arguments that a function does not know. Raises TypeError for any other
    name in it, and if both names were given."""
    for name in given:
        if name != old:
            raise TypeError(f"unexpected keyword argument '{name}'")
    if old not in given:
        return value
    if value is not None:
        raise TypeError(f"{old} is the old name of {now}: give only one of them")
    _warn(f"{old}=", f"{now}=", 2)
    return given[old]


def renamed_value(option, value, names):
    """Returns `value`, or its new name. `names` maps old names to new names."""
    if value not in names:
        return value
    _warn(f"{option} {value!r}", repr(names[value]), 2)
    return names[value]
