"""Captures one training step of PyTorch as a program file, without memory for any tensor.

    python -m torch_ferry.capture train.py -o train.jsonl -- --batch-size 8
    python -m torch_ferry.capture gpt2 -o gpt2.jsonl
    python -m torch_ferry.capture llama3-8b --batch 2 --tokens 4096 -o llama.jsonl
    python -m torch_ferry.capture my_package.my_model:step -o mine.jsonl

SPEC is a script, a preset, `module.path:function` or `file.py:function`. A script runs unmodified
on fake tensors, with the arguments after `--`, up to its first optimizer step
(`torch_ferry.script`). A function also runs on fake tensors, so it may build a model of any size.
It returns (module, inputs, loss function): a tuple of arguments or a dict of keyword arguments, and
what makes a scalar of the module's output. It gets `batch` and `tokens` if you give these options.

From Python: `capture(module, inputs, loss_fn, name="mine").write("mine.jsonl")`. A module of real
tensors is copied to fake tensors. After a capture all tensors, modules and random generators are as
they were before (`torch_ferry.untouched`).

Calls of torch.utils.checkpoint and of `torch_ferry.checkpoint` become segments of the program. Not
captured: the optimizer's step, gradients of gradients, other checkpoints, and backward formulas
that keep tensors outside save_for_backward. A capture knows only the values that follow from the
script (`torch_ferry.values`). A step that asks for another value is rejected, with the line.
"""

import argparse
import contextlib
import importlib
import inspect
import logging
import os
import sys
import warnings

from . import progress
from .program import CaptureError, ProgramError, WriteError, check_writable


def capture(module, inputs, loss_fn, name="program", about=None, device="cuda", assume=(),
            capability=None):
    """Captures one forward and backward of loss_fn(module(*inputs)) as a program.

    Returns a `torch_ferry.program.Program`.

    module      a torch.nn.Module, of real or fake tensors
    inputs      a tuple of arguments, or a dict of keyword arguments
    loss_fn     a function that makes a scalar of the module's output
    name        the name of the program
    about       a dict of texts to store in the program
    device      "cuda" or "cpu": whose kernels the step runs. Tensors on other devices are moved
                there first, and tensors that the step makes without naming a device are made there
    assume      assumptions about values that are not known: "zeros", "balanced". The program's
                `about` lists the assumptions that were used, with the lines that needed them
    capability  the compute capability of the card, such as (9, 0), which decides the attention
                kernel. By default that of the GPU in this machine, or else flash attention

    Raises `CaptureError` if the step cannot be captured."""
    import torch
    from .asking import telling_triton
    from .recorder import Recorder
    from .untouched import untouched

    with telling_triton(), untouched(module, inputs, loss_fn), _device(device, capability):
        mode = fake_mode_of(module, assume)
        module, inputs, moved = _to_fakes(mode, module, inputs, device)
        recorder = Recorder(mode, device, moved)
        with torch.device(device) if moved else contextlib.nullcontext(), recorder.listening():
            with torch.enable_grad(), recorder.forward_of(module, inputs):
                keywords = isinstance(inputs, dict)
                loss = loss_fn(module(**inputs) if keywords else module(*inputs))
            recorder.backward(loss, lambda: loss.backward())
    return recorder.program(name, about)


def cuda():
    """Returns a context in which torch.cuda has a device, also without a GPU.

    Use it for code that needs a device before `capture` runs, such as `model.to("cuda")` or
    `torch.autocast("cuda")`. Nothing is computed on that device."""
    from . import fake_cuda

    return fake_cuda.available()


@contextlib.contextmanager
def _device(device, capability=None):
    import torch
    from . import fake_cuda

    if device != "cuda":
        yield
        return
    if not torch.cuda.is_available():  # then autocast("cuda") has warned and disabled itself
        around = torch.autocast_increment_nesting() - 1
        torch.autocast_decrement_nesting()
        if around and not torch.is_autocast_enabled("cuda"):
            raise CaptureError("torch.autocast around a capture casts nothing without a GPU: enter "
                               "torch_ferry.capture.cuda() before torch.autocast")
    with fake_cuda.of_card(capability), fake_cuda.available():
        yield


def fake_mode_of(module, assume=()):
    """Returns the fake mode that the module's tensors were made under, or a new one."""
    from torch._subclasses.fake_tensor import FakeTensor
    from .values import ValueMode

    for tensor in [*module.parameters(), *module.buffers()]:
        if isinstance(tensor, FakeTensor) and isinstance(tensor.fake_mode, ValueMode):
            tensor.fake_mode.assume(assume)
            tensor.fake_mode.look_anew()
            return tensor.fake_mode
        if isinstance(tensor, FakeTensor):
            raise CaptureError("the model's fake tensors come from a mode that knows no values: "
                               "make the model under torch_ferry.capture.fake_mode()")
    return ValueMode(assume)


@contextlib.contextmanager
def fake_mode(assume=()):
    """A context to make models of fake tensors: `with fake_mode(): model = ...` allocates nothing.

    assume  assumptions about values that are not known, as in `capture`"""
    from .reads import Reads
    from .twins import Twins
    from .values import ValueMode

    with ValueMode(assume) as mode, Reads(), Twins(mode.twin):
        yield mode


def _to_fakes(mode, module, inputs, device):
    """Returns the module and its inputs as fake tensors on the device, and True if some of them
    had to be moved there."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._pytree import tree_leaves, tree_map_only
    from .known import take
    from .model_copy import copy_of

    mode.stand_for_any(each for each in tree_leaves((inputs, [*module.parameters()]))
                       if isinstance(each, torch.Tensor))
    tensors = [*module.parameters(), *module.buffers()]
    if not all(isinstance(tensor, FakeTensor) for tensor in tensors):
        module = copy_of(module, mode)

    def fake(tensor):
        return tensor if isinstance(tensor, FakeTensor) else mode.from_tensor(tensor)

    inputs = tree_map_only(torch.Tensor, fake, inputs)
    tree_map_only(torch.Tensor, take, inputs)
    tensors = [*module.parameters(), *module.buffers(),
               *(leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor))]
    moved = any(tensor.device.type != device for tensor in tensors)
    if moved:
        with mode:
            module = module.to(device)
            inputs = tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), inputs)
    return module, inputs, moved


def build(spec, **options):
    """Returns (name, module, inputs, loss function, about) of a preset or `module.path:function`.
    """
    from . import presets
    from .untouched import untouched

    given = {key: value for key, value in options.items() if value is not None}
    if spec in presets.NAMES:
        with fake_mode():
            return spec, *presets.build(spec, **given)
    where, colon, function = spec.partition(":")
    if not (where and colon and function):
        raise CaptureError("expected a script (a .py file), module.path:function, "
                           "file.py:function, or one of "
                           f"{', '.join(presets.NAMES)}; got {spec!r}")
    make = _function(spec, where, function)
    taken = inspect.signature(make).parameters
    if refused := [key for key in given if key not in taken]:
        raise CaptureError(f"--{refused[0]} is for presets, and for functions that have this "
                           "argument")
    with untouched(make), fake_mode():
        made = make(**given)
    if not (isinstance(made, tuple) and len(made) == 3):
        raise CaptureError(f"expected {spec} to return (module, inputs, loss function)")
    return function, *made, {"model": spec, **{key: str(value) for key, value in given.items()}}


def _function(spec, where, name):
    """Returns the function of a module, or of a file, whose folder is searched for modules."""
    from_file = where.endswith(".py")
    if from_file and not os.path.isfile(where):
        raise CaptureError(f"the file {where} does not exist")
    sys.path.insert(0, os.path.dirname(os.path.abspath(where)) if from_file else os.getcwd())
    try:
        module = importlib.import_module(
            os.path.splitext(os.path.basename(where))[0] if from_file else where)
        return getattr(module, name)
    except (ImportError, AttributeError) as error:
        raise CaptureError(f"cannot import {spec}: {error}") from error


def capture_function(spec, batch=None, tokens=None, dtype=None, capability=None):
    """Returns the program of `module.path:function` or `file.py:function`, as the command does."""
    from .untouched import untouched

    with untouched(), _device("cuda", capability):
        name, *step, about = build(spec, batch=batch, tokens=tokens, dtype=dtype)
        return capture(*step, name=name, about=about)


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("expected a positive number")
    return value


def probability(text):
    value = float(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError("expected a probability: at least 0 and below 1")
    return value


def compute_capability(text):
    major, point, minor = text.partition(".")
    if not (point and major.isdecimal() and minor.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected a compute capability such as 9.0; got {text!r}")
    return int(major), int(minor)


def capture_script(path, arguments=(), device="cuda", assume=(), capability=None, name=None):
    """Runs a script up to its first optimizer step. Returns the program of its step, and the
    command that plans it, as a function of the program's path."""
    from .script import Script

    if not os.path.isfile(path):
        raise CaptureError("this file does not exist")
    with _device(device, capability):
        script = Script(path, arguments, device, assume).run()
        name = name or os.path.splitext(os.path.basename(path))[0]
        return script.program(name), script.advice


def _script(options):
    """Captures the step of a script and writes the program."""
    for key in ("batch", "tokens", "dtype", "dropout"):
        if getattr(options, key) is not None:
            raise CaptureError(f"--{key} is for presets; give the script's own options after --")
    program, advice = capture_script(options.spec, options.arguments, options.device,
                                     options.assume, options.capability, options.name)
    program.write(options.path)
    progress.clear()
    print(f"torch_ferry.capture: {options.path}; to plan it as the script trains: "
          f"{advice(options.path)}", file=sys.stderr)


def _step(options):
    """Captures the step of a preset or of a function and writes the program."""
    if options.arguments:
        raise CaptureError("arguments after -- are for scripts only")
    from .untouched import untouched

    with untouched(), _device(options.device, options.capability):
        name, *step, about = build(options.spec, batch=options.batch, tokens=options.tokens,
                                   dtype=options.dtype, dropout=options.dropout)
        program = capture(*step, name=options.name or name, about=about, device=options.device,
                          assume=options.assume)
    program.write(options.path)
    progress.clear()
    print(f"torch_ferry.capture: {options.path}; to plan it, with the optimizer of Hugging Face's "
          f"Trainer: ferry plan {options.path} --optimizer adamw --optimizer-implementation fused "
          "--card CARD", file=sys.stderr)


def _parser():
    parser = argparse.ArgumentParser(prog="python -m torch_ferry.capture",
                                     usage="%(prog)s [OPTIONS] SPEC -o FILE [-- SCRIPT'S ARGS]",
                                     description="Writes one training step as a program file.")
    parser.add_argument("spec", metavar="SPEC",
                        help="a script, module.path:function, file.py:function, or a preset: "
                        "gpt2, llama3-8b, llama3-8b-lora, mixtral-block, qwen3-8b, resnet50, "
                        "unet, vit-b16")
    parser.add_argument("-o", dest="path", metavar="FILE", required=True)
    parser.add_argument("--name", help="name of the program; default: that of the script, preset "
                        "or function")
    parser.add_argument("--batch", type=positive,
                        help="batch size, for a preset or a function with this argument")
    parser.add_argument("--tokens", type=positive,
                        help="tokens in a sequence, for the same; for images the height and width")
    parser.add_argument("--dtype", choices=("bf16", "f16", "f32"), help="dtype of a preset")
    parser.add_argument("--dropout", type=probability, help="dropout of a preset; default 0")
    parser.add_argument("--assume", action="append", default=[], metavar="WHAT",
                        help="what to assume for unknown values. zeros: a number that the step "
                        "asks for is 0; balanced: each expert gets its share of the tokens. May be "
                        "given twice")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="the device whose kernels the step runs; default cuda, which needs no "
                        "GPU")
    parser.add_argument("--capability", type=compute_capability, metavar="X.Y",
                        help="compute capability of the card, which decides the attention kernel: "
                        "9.0 for an H100, on which PyTorch prefers cuDNN's; default: that of the "
                        "GPU in this machine, or else flash attention")
    return parser


def main(arguments=None):
    words = sys.argv[1:] if arguments is None else list(arguments)
    own = words.index("--") if "--" in words else len(words)
    options = _parser().parse_args(words[:own])
    options.arguments = words[own + 1:]  # for a script
    logging.disable(logging.ERROR)  # torch logs errors of fake operators; they are printed below
    warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
    try:
        from .asking import where_raised
        from .fake_cuda import Unavailable
    except ImportError as error:
        print(f"torch_ferry.capture: torch cannot be imported: {error}", file=sys.stderr)
        return 7
    try:
        check_writable(options.path)
        if options.capability and options.device != "cuda":
            raise CaptureError("--capability is for a GPU: use it with --device cuda")
        with progress.shown():
            (_script if options.spec.endswith(".py") else _step)(options)
    except ModuleNotFoundError as error:
        print(f"torch_ferry.capture: {options.spec} needs a package: {error}", file=sys.stderr)
        return 7
    except WriteError as error:
        print(f"torch_ferry.capture: {error}", file=sys.stderr)
        return 7
    except Exception as error:  # the user's model may raise anything on fake tensors
        if isinstance(error, (CaptureError, ProgramError, Unavailable)):
            said = str(error) + getattr(error, "device_advice", "")
        else:
            said = f"{where_raised(error)}: {type(error).__name__}: {error}"
        print(f"torch_ferry.capture: {options.spec}: {said}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
