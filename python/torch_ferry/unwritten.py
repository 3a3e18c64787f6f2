"""Memory that nothing was written to yet: when its values are known.

`empty_like` of known lengths has no values, though its argument has. They are known once a call
writes all of them, from values that are known: as `scatter_` writes the inverse of a permutation,
where packed sequences are sorted. Whether it writes all is seen by two runs of the call, over zeros
and over ones: where they agree, nothing is left of what was there.

Only integers and booleans, which tell shapes. Writes through a part of the memory make it known to
nobody.
"""

import torch

from .copies import Cell, Value

EMPTIES = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty",
           "new_empty_strided"}


def leave_unwritten(fake):
    """`fake` is what one of EMPTIES made."""
    if not (fake.dtype.is_floating_point or fake.dtype.is_complex):
        fake._ferry_value = Value(torch.empty_strided(
            fake.shape, fake.stride(), dtype=fake.dtype, device="cpu"), Cell(False, False, True))


def unwritten(value):
    """Whether this is a `Value` that waits for the first write."""
    return value is not None and value.cell.is_unwritten and not value.cell.known


def is_view(func):
    return any(each.alias_info is not None and not each.alias_info.is_write
               for each in func._schema.returns)


def run_over(value, run):
    """The result of `run`, which writes to this value, and the value is known then; None where it
    leaves anything of what was there."""
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
