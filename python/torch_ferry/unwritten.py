"""Decides when the values of memory become known that was allocated without being written.

The result of `empty_like` has no values, even if its argument has. The values become known when a
call writes all of them from known values. For example, `scatter_` writes the inverse of a
permutation when packed sequences are sorted. To find out if a call writes everything, it runs
twice, over zeros and over ones. If both results are equal, nothing is left of the old memory.

This is done for integers and booleans only, because these determine shapes. A write to a part of
the memory does not make it known.
"""

import torch

from .copies import Cell, Value

EMPTIES = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
           "new_empty_strided"}


def leave_unwritten(fake):
    """Marks `fake`, which one of EMPTIES made, as memory without values."""
    if not (fake.dtype.is_floating_point or fake.dtype.is_complex):
        fake._ferry_value = Value(torch.empty_strided(
            fake.shape, fake.stride(), dtype=fake.dtype, device="cpu"), Cell(False, False, True))


def unwritten(value):
    """Returns True if this `Value` waits for its first write."""
    return value is not None and value.cell.is_unwritten and not value.cell.known


def is_view(func):
    return any(each.alias_info is not None and not each.alias_info.is_write
               for each in func._schema.returns)


def run_over(value, run):
    """Calls `run` twice, which writes to this value. If nothing is left of the old memory, marks
    the value as known and returns the result of `run`; otherwise returns None."""
    tensor = value.tensor
    if tensor.numel() * tensor.element_size() != tensor.untyped_storage().nbytes():
        return None
    tensor.fill_(0)
    run()
    over_zeros = tensor.clone()
    tensor.fill_(1)
    made = run()
    if not torch.equal(tensor, over_zeros):
        return None
    value.cell.known = True
    return made
