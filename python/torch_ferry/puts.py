"""What operators that write at indices run and move: index_put, scatter, index_add and their kin.

The twin of formats/op_puts.h, which says how.
"""

from .op_call import distinct_bytes

INDEX = 8  # bytes
SORTED_AT_ONCE = 256 * 9  # by one kernel of cub's; more by 8 bits a pass, after two that count
BITS_A_PASS = 8
COUNTING_KERNELS = 2

INDEX_PUTS = {"index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}
ADDS = {"scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "index_add",
        "index_add_"}
BY_SOURCE = {"index_add", "index_add_", "index_copy", "index_copy_"}
PUTS = INDEX_PUTS | ADDS | BY_SOURCE | {"scatter", "scatter_"}


def put_traffic(name, inputs, fresh, given):
    """(kernels, read, written) of all that the call runs. `given`: asks for an argument by name."""
    into, values = inputs[0], inputs[-1]
    has_values = len(inputs) > 2
    tensors = inputs[1:-1] if has_values else inputs[1:]
    indices = max(t.numel() for t in tensors)
    index_bytes = sum(map(distinct_bytes, tensors))
    by_source = name in INDEX_PUTS or name in BY_SOURCE
    count = max(indices, values.numel()) if by_source else indices  # of what is put
    adds = name in ADDS or name in INDEX_PUTS and given("accumulate", False)
    touched = min(count, into.numel()) * into.element_size()
    all_of = [(1, index_bytes + (distinct_bytes(values) if has_values else 0) + touched * adds,
               touched)]
    if name in INDEX_PUTS and adds and indices:
        rows = into.numel() // max(count // indices, 1)
        all_of += _sorting(indices, len(tensors), rows, not given("unsafe", False))
        all_of.append((0, 2 * indices * INDEX - index_bytes, 0))  # what was sorted, in their place
    copies = 1
    if name in ("scatter_reduce", "scatter_reduce_"):
        copies = 2
        if not given("include_self", True):
            all_of.append((1, index_bytes, touched))
        if given("reduce", "") == "mean":
            all_of += _dividing(into, values, count)
    if fresh:
        all_of.append((copies, copies * distinct_bytes(into), copies * distinct_bytes(fresh[0])))
    return tuple(map(sum, zip(*all_of)))


def _sorting(count, tensors, rows, checks):
    """What goes before the kernel that adds."""
    each = count * INDEX
    if checks:  # the least and the most are compared, and that is asserted
        yield 6 * tensors, 2 * tensors * each, 0
    yield 2 * tensors, 2 * tensors * each, 2 * tensors * each  # wrapped, times the stride
    yield tensors - 1, 2 * (tensors - 1) * each, (tensors - 1) * each  # summed
    yield 2, each, 2 * each  # divided by the slice's size; places counted up
    passes = 1
    if count <= SORTED_AT_ONCE:
        yield 1, 2 * each, 2 * each
        return
    while rows - 1 >> BITS_A_PASS * passes > 0:
        passes += 1
    yield passes + COUNTING_KERNELS, (2 * passes + 1) * each, 2 * passes * each


def _dividing(into, values, count):
    """A mean's: ones are summed as the values are, and what they come to divides."""
    whole, elements, ones = distinct_bytes(into), into.numel(), distinct_bytes(values)
    added = min(count, elements) * into.element_size()
    yield 2, 0, ones + whole  # ones of each, or zeros
    yield 1, count * INDEX + ones + added, added
    yield 1, whole, elements  # where it is 0
    yield 1, elements, whole  # put 1 there
    yield 1, 2 * whole, whole
