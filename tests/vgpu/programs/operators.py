"""PyTorch's own sample calls (op_db), on `cuda` and on the CPU: the same bits, with gradients?

    operators.py FIRST STRIDE SAMPLES      every STRIDEth operator from the FIRST; of each so many
                                           samples at most, 0: all

One line of JSON for each operator: its number, name, verdict, and why. The verdicts, from the best;
an operator is the worst that its samples are:

    right      every output and every gradient has the CPU's bits
    in kind    random, or not initialised: the shapes and types are the CPU's, a seed repeats it;
               or what a GPU returns otherwise than a CPU, by design
    close      within ten times assert_close's tolerances: CUDA's own code calls other operators
    unchecked  computed, and the CPU does not compute it
    refused    with the words of what is refused by its name
    wrong      anything else
"""

import contextlib
import json
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

REFUSALS = ("the virtual GPU does not compute", "the virtual GPU runs no compiled kernel",
            "undefined symbol: cu",     # of the driver
            "Could not run 'aten::")    # PyTorch's own, for what it has no CUDA kernel of
VERDICTS = ("right", "in kind", "close", "unchecked", "refused", "wrong")
TOLERANCE = {"rtol": 1.3e-5, "atol": 1e-4}
UNINITIALISED = ("empty", "new_empty")  # and what begins so
STATISTICS = "outside training a GPU returns the statistics that it used, and a CPU nothing"
OF_A_GPU = {"native_batch_norm": STATISTICS, "_native_batch_norm_legit": STATISTICS}
DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16)


def on_cpu(value):
    """With every tensor copied, and every device that is named another one."""
    if isinstance(value, torch.Tensor):
        return copied(value.detach()).requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or isinstance(value, str) and value.startswith("cuda"):
        return torch.device("cpu")
    if isinstance(value, torch.Generator):
        return torch.Generator("cpu").manual_seed(value.initial_seed())
    return value


def copied(tensor):
    """With its strides, and with what else is in its storage, which there are views of."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return tensor.cpu()
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
    return whole.cpu().as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def as_leaf(value):
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


@contextlib.contextmanager
def seeded(by):
    """Random numbers from this seed, and from another one where a sample seeds them itself."""
    manual_seed = torch.manual_seed
    manual_seed(by)
    torch.manual_seed = lambda seed: manual_seed(seed + by)
    try:
        yield
    finally:
        torch.manual_seed = manual_seed


def call(op, sample, arguments, seed=0):
    with seeded(seed):
        return call_seeded(op, sample, arguments)


def call_seeded(op, sample, arguments):
    """The outputs and the gradients, and the numbers among the outputs."""
    leaves = [x for x in tree_leaves(arguments)
              if isinstance(x, torch.Tensor) and x.requires_grad]
    (first, positional, named) = arguments
    made = op(first, *positional, **named)
    outputs = [x for x in tree_leaves(made) if isinstance(x, torch.Tensor)]
    roots = [x for x in tree_leaves(sample.output_process_fn_grad(made))
             if isinstance(x, torch.Tensor) and x.requires_grad]
    gradients = []
    if roots and leaves:
        seeds = [seed_of(root) for root in roots]
        gradients = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
    others = [x for x in tree_leaves(made) if isinstance(x, (int, float, complex, bool))]
    # Copies: an operator may have written what it was given.
    return [x if x is None else x.detach().cpu().clone() for x in (*outputs, *gradients)], others


def seed_of(root):
    """Not all ones, which hide what is multiplied by them."""
    ramp = torch.arange(root.numel(), dtype=torch.float32).remainder(7) / 4 + 0.5
    dense = ramp.reshape(root.shape).to(root.dtype).to(root.device)
    return dense if root.layout == torch.strided else dense.to_sparse(layout=root.layout)


def plain(tensor):
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return dense.resolve_conj().resolve_neg()


def alike(one, other):
    if one is None or other is None:
        return one is other
    return (one.shape, one.dtype, one.layout) == (other.shape, other.dtype, other.layout)


def same(one, other):
    if not alike(one, other):
        return False
    if one is None:
        return True
    one, other = plain(one), plain(other)
    if one.is_quantized:
        return torch.equal(one.int_repr(), other.int_repr())
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    if not one.is_floating_point():
        return torch.equal(one, other)
    # A NaN is a NaN: which one it is, is the order in which the operands stood.
    numbers = ~(one.isnan() & other.isnan())
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(one.element_size(), torch.uint8)
    return torch.equal(one.contiguous().view(bits)[numbers], other.contiguous().view(bits)[numbers])


def is_close(one, other):
    try:
        torch.testing.assert_close(one, other, equal_nan=True,
                                   **(TOLERANCE if one is not None and
                                      one.dtype in (torch.float32, torch.complex64) else {}))
    except AssertionError:
        return False
    return True


def compare(name, op, sample, mine, theirs, got):
    want, numbers = call(op, sample, theirs)
    if len(want) != len(got[0]):
        return "wrong", f"{len(got[0])} tensors, and the CPU has {len(want)}"
    if all(map(same, want, got[0])) and numbers == got[1]:
        return "right", ""
    if name in OF_A_GPU:
        return "in kind", OF_A_GPU[name]
    uninitialised = name.startswith(UNINITIALISED)
    again, _ = call(op, sample, theirs, seed=1)
    if uninitialised or not all(map(same, want, again)):
        if not all(map(alike, want, got[0])):
            return "wrong", "a random result of another shape or type"
        if uninitialised or all(map(same, got[0], call(op, sample, mine)[0])):
            return "in kind", "not initialised" if uninitialised else "random"
        return "wrong", "a seed does not repeat it"
    if numbers != got[1]:
        return "wrong", f"{got[1]}, and the CPU has {numbers}"
    differing = [i for i, pair in enumerate(zip(want, got[0])) if not same(*pair)]
    if all(map(is_close, want, got[0])):
        return "close", f"tensors {differing} of {len(want)}"
    one, other = want[differing[0]], got[0][differing[0]]
    return "wrong", f"tensor {differing[0]} of {len(want)}: {other}, and the CPU has {one}"


def judge_sample(name, op, sample):
    mine = tree_map(as_leaf, (sample.input, sample.args, sample.kwargs))
    theirs = tree_map(on_cpu, mine)
    try:
        got = call(op, sample, mine)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if any(words in text for words in REFUSALS):
            return "refused", text.splitlines()[0]
        try:
            call(op, sample, theirs)
        except type(error):
            return "right", ""  # both refuse it
        except Exception as other:
            return "wrong", f"{text}; the CPU: {type(other).__name__}: {other}"
        return "wrong", text
    try:
        return compare(name, op, sample, mine, theirs, got)
    except Exception as error:
        return "unchecked", f"the CPU does not compute it: {type(error).__name__}: {error}"


def judge(op, most):
    """The worst of its samples."""
    dtypes = op.supported_dtypes("cuda")
    dtype = next((each for each in DTYPES if each in dtypes), next(iter(dtypes), None))
    if dtype is None:
        return "right", "no sample", 0
    grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    worst, samples = ("right", ""), 0
    try:
        for sample in op.sample_inputs("cuda", dtype, requires_grad=grad):
            if most and samples >= most:
                break
            samples += 1
            found = judge_sample(op.name, op, sample)
            worst = max(worst, found, key=lambda each: VERDICTS.index(each[0]))
    except Exception as error:
        text = f"a sample: {type(error).__name__}: {error}"
        verdict = "refused" if any(words in text for words in REFUSALS) else "wrong"
        worst = max(worst, (verdict, text), key=lambda each: VERDICTS.index(each[0]))
    return *worst, samples


def main(first, stride, most):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for number in range(first, len(op_db), stride):
        op = op_db[number]
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        print(json.dumps([number, name, "begun"]), flush=True)
        verdict, why, samples = judge(op, most)
        why = " ".join(why.split())[:300]
        print(json.dumps([number, name, verdict, why, samples]), flush=True)
        if "cudaErrorAssert" in why:  # as on a GPU, nothing works any more in this process
            sys.exit(1)
    print(json.dumps(["done", len(op_db)]), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
