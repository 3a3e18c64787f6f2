"""Reads sizes in bytes: a number, or a text with a unit ("64MiB", "20GB").

All options of torch_ferry and of the command read sizes in this way (scenarios/units.cpp). Standard
library only.
"""

import re

_UNITS = {"": 1, "B": 1, "kB": 10 ** 3, "KB": 10 ** 3, "MB": 10 ** 6, "GB": 10 ** 9, "TB": 10 ** 12,
          "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size(value, name=None):
    """Returns a size in bytes. `value` is a number or a text such as "64MiB" or "1.5 GB". Raises
    ValueError if it cannot be read; the message begins with `name`, the option."""
    if not isinstance(value, str):
        return int(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if not match or match[2] not in _UNITS:
        raise ValueError(
            f"{f'{name}: ' if name else ''}expected a size in bytes, such as 67108864 or "
            f'"64MiB"; got {value!r} (units: {", ".join(unit for unit in _UNITS if unit)})')
    whole, _, part = match[1].partition(".")
    unit = _UNITS[match[2]]
    return int(whole) * unit + int(part or 0) * unit // 10 ** len(part)
