"""What saving a tensor costs the host, C++ beside Python, in one run.

    python compare_hooks.py HOOKS_BENCH

runs the benchmark program given and the same chain of ops here, under Python's
saved_tensors_hooks: a no-op pair, and the published offloading policy (TRL's: an id, a size test, a
dictionary; what is large is copied to the host and back). Needs the torch of the environment that
LibTorch came from. Prints nanoseconds of the calling thread's CPU time per saved tensor, over the
chain without hooks, which runs in turns with it: the median of the rounds.
"""

import statistics
import sys
import time

import torch

from best_rows import middle_rows

LENGTH = 1000
LEAST_BYTES = 1024
SMALL, LARGE = 16, 1024


class Policy:
    """pack and unpack as TRL's OffloadActivations does them without streams."""

    def __init__(self):
        self.tracker = {}
        self.id = 0

    def pack(self, activation):
        self.id += 1
        num_bytes = activation.element_size() * activation.nelement()
        if num_bytes >= LEAST_BYTES and not isinstance(activation, torch.nn.Parameter):
            host = torch.empty_like(activation, device="cpu")
            host.copy_(activation, non_blocking=True)
            self.tracker[self.id] = (host, True)
        else:
            self.tracker[self.id] = (activation, False)
        return self.id

    def unpack(self, tensor_id):
        tensor, modified = self.tracker.pop(tensor_id)
        return tensor.clone() if modified else tensor


def chain_ns(leaf, ones, hooks):
    begin = time.thread_time_ns()
    with hooks():
        x = leaf
        for _ in range(LENGTH):
            x = x.sin()
        x.backward(ones)
    return (time.thread_time_ns() - begin) / LENGTH


def over_ns(elements, hooks):
    leaf = torch.randn(elements, requires_grad=True)
    ones = torch.ones(elements)

    def difference(turn):
        first, second = (torch.enable_grad, hooks) if turn % 2 else (hooks, torch.enable_grad)
        change = chain_ns(leaf, ones, first) - chain_ns(leaf, ones, second)
        return -change if turn % 2 else change

    return statistics.median(difference(turn) for turn in range(200))


def python_rows():
    torch.set_num_threads(1)

    def no_op():
        return torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach(), lambda x: x)

    def policy():
        each = Policy()
        return torch.autograd.graph.saved_tensors_hooks(each.pack, each.unpack)

    rows = {}
    for size, elements in (("small", SMALL), ("large", LARGE)):
        rows[f"{size}_python_no_op"] = over_ns(elements, no_op)
        rows[f"{size}_python_policy"] = over_ns(elements, policy)
    return rows


def main():
    rows = {**middle_rows(sys.argv[1], "over_ns"), **python_rows()}
    for name, ns in sorted(rows.items()):
        print(f"{name:24} {ns:9.0f} ns")
    print(f"kept / no-op             {rows['small_kept'] / rows['small_no_op']:9.2f}")
    print(f"python policy / kept     {rows['small_python_policy'] / rows['small_kept']:9.2f}")
    print(f"python policy / moved    {rows['large_python_policy'] / rows['large_moved']:9.2f}")


if __name__ == "__main__":
    main()
