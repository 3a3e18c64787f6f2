"""Runs PyTorch's own sample inputs, of operators and of modules, forward and backward twice, while
recorder/ writes down what the dispatcher is called with.

    record.py RECORDER.so OUT [--samples N] [--calls N]
"""

import argparse
import ctypes
import itertools
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from unsampled import CALLS

# The sweep casts what these give to the other dtypes.
DTYPES = (torch.float32, torch.complex64)


def dtypes_of(op):
    supported = op.supported_dtypes("cpu")
    return [d for d in DTYPES if d in supported] or sorted(supported, key=str)[:1]


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from tensors_in(inner)


def differentiate(outputs, inputs):
    """Twice, so that backward's own calls are among those written down."""
    inputs = [x for x in inputs if x.requires_grad]
    for _ in range(2):
        outputs = [x for x in outputs if x.requires_grad and x.layout == torch.strided]
        if not outputs or not inputs:
            return
        ones = [torch.ones_like(x) for x in outputs]
        grads = torch.autograd.grad(outputs, inputs, ones, create_graph=True, allow_unused=True)
        outputs = [x for x in grads if x is not None]


def run(call, sample, clone_input):
    given = sample.input
    if clone_input:  # a leaf is not written in place
        given = given.clone() if isinstance(given, torch.Tensor) else [x.clone() for x in given]
    outputs = call(given, *sample.args, **sample.kwargs)
    inputs = itertools.chain(tensors_in([sample.input, sample.args]),
                             tensors_in(list(sample.kwargs.values())))
    differentiate(list(tensors_in(outputs)), list(inputs))


def differentiate_call(call):
    """The call makes its own leaves: they are found at the ends of the graph."""
    outputs = [x for x in tensors_in(call()) if x.requires_grad]
    torch.autograd.backward(outputs, [torch.ones_like(x) for x in outputs], create_graph=True)


def calls_of(op):
    """(function, whether it writes its input), under all its names."""
    for named in (op, *op.aliases):
        yield named.op, False
        if named.inplace_variant is not None:
            yield named.inplace_variant, True


def samples(op, dtype):
    grad = dtype.is_floating_point or dtype.is_complex
    for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
        for call, in_place in calls_of(op):
            yield lambda call=call, in_place=in_place, sample=sample: run(call, sample, in_place)


def run_module(module_class, sample, training):
    made, given = sample.constructor_input, sample.forward_input
    module = module_class(*made.args, **made.kwargs).train(training)
    outputs = module(*given.args, **given.kwargs)
    inputs = itertools.chain(module.parameters(), tensors_in(given.args))
    differentiate(list(tensors_in(outputs)), list(inputs))


def module_samples(info, training):
    for sample in info.module_inputs_func(info, "cpu", torch.float32, True, training):
        yield lambda sample=sample: run_module(info.module_cls, sample, training)


def run_all(steps, count):
    """How many of the first `count` raised: some are there to raise, and what is then missing the
    sweep says."""
    raised = 0
    for step in itertools.islice(steps, count):
        try:
            step()
        except Exception:
            raised += 1
    return raised


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recorder")
    parser.add_argument("out")
    parser.add_argument("--samples", type=int, default=4, help="of each operator and dtype")
    parser.add_argument("--calls", type=int, default=4, help="that are kept of an overload")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    recorder = ctypes.CDLL(options.recorder)
    recorder.ferry_record(ctypes.c_size_t(options.calls))
    raised = 0
    for op in op_db:
        for dtype in dtypes_of(op):
            count = options.samples * len(list(calls_of(op)))
            raised += run_all(samples(op, dtype), count)
    for info in module_db:
        for training in (True, False):
            raised += run_all(module_samples(info, training), options.samples)
    raised += run_all((lambda call=call: differentiate_call(call) for call in CALLS), len(CALLS))
    count = recorder.ferry_write(options.out.encode())
    sources = f"{len(op_db)} operators and {len(module_db)} modules"
    print(f"{sources}: {raised} samples raised, {count} calls written")


if __name__ == "__main__":
    main()
