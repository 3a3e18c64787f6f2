"""Makes the program of a model that `ferry plan` was asked for by name, and prints its path.

    python -m ferry_command.model [--tokens N] [--batch N] [--dtype D] [--attention A]
        [--lora R[,LAYER…]] [--qlora R[,LAYER…]] [--checkpointing] [--sft] [--dpo] [--trust]
        [--capability X.Y] -- SUBJECT [ARGUMENT…]

The command starts this program for every subject that is a model (`ferry_command.names`). Programs
of models are cached by all that they depend on: the configuration, the options, and the versions of
Ferry and of the libraries. So a second question needs no torch, which takes seconds to import. A
script, a function of a file and code of the hub may depend on anything, so they are captured each
time.

Exit codes: 2 bad input, 7 something is missing (a package, the network, access), 130 Ctrl-C.
"""

import argparse
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys

from ferry_command.names import RESOURCE_MISSING, USAGE, Failure, Subject

# The cache keeps this many programs; each has about 1 MB.
_KEPT = 64
_INTERRUPTED = 130
_FLAGS = ("checkpointing", "sft", "dpo", "trust")
# Options that a kind of subject does not have → why.
_REFUSED = {
    "script": (("tokens", "batch", "dtype", "attention", "lora", "qlora", *_FLAGS),
               "is for a model by its name; a script says this itself"),
    "function": (("attention", "lora", "qlora", *_FLAGS),
                 "is for a model by its name; a function says this itself"),
    "images": (("attention", "lora", "qlora", *_FLAGS), "is for a model of transformers"),
    "pipeline": (("attention", "lora", "qlora", "sft", "dpo", "trust"),
                 "is for a model of transformers"),
}


def main(words=None):
    words = sys.argv[1:] if words is None else words
    own = words.index("--")
    options = _parser().parse_args(words[:own])
    options.subject, *options.arguments = words[own + 1:]
    try:
        print(_program(options))
    except Failure as error:
        print(f"ferry: {options.subject}: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="python -m ferry_command.model", allow_abbrev=False)
    for name, kind in (("tokens", int), ("batch", int), ("dtype", str), ("attention", str),
                       ("lora", str), ("qlora", str), ("capability", str)):
        parser.add_argument(f"--{name}", type=kind)
    for name in _FLAGS:
        parser.add_argument(f"--{name}", action="store_true")
    return parser


def _program(options):
    """Returns the path of the program; captures it if it is not in the cache."""
    subject = Subject(options.subject, options.trust)
    refused, why = _REFUSED.get(subject.kind, ((), ""))
    if typed := [name for name in refused if getattr(options, name)]:
        raise Failure(f"--{typed[0]} {why}", USAGE)
    if options.arguments and subject.kind != "script":
        raise Failure(f"{options.arguments[0]}: only a script takes arguments", USAGE)
    if subject.kind in ("script", "function"):
        path = _cache() / f"script-{os.getpid()}.jsonl"
        _capture(lambda: _of_file(options, subject), path)
        return path
    how = _how(options)
    key = json.dumps([subject.name, subject.contents(), how, _versions(subject.packages(how))],
                     sort_keys=True)
    path = _cache() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.jsonl"
    if path.exists() and not options.trust:
        path.touch()
        return path
    _capture(lambda: _of_name(subject, how), path)
    for old in sorted(path.parent.glob("*.jsonl"), key=os.path.getmtime)[:-_KEPT]:
        old.unlink(missing_ok=True)
    return path


def _how(options):
    """Returns the options of a model as the functions of torch_ferry take them."""
    lora = _lora("--lora", options.lora) or _lora("--qlora", options.qlora)
    trainer = "sft" if options.sft else "dpo" if options.dpo else "trainer"
    return {"batch": options.batch or 1, "tokens": options.tokens, "dtype": options.dtype,
            "attention": options.attention, "lora": lora, "quantized": bool(options.qlora),
            "checkpointing": options.checkpointing, "trainer": trainer,
            "capability": _capability(options)}


def _of_name(subject, how):
    given = {key: how[key] for key in ("batch", "tokens", "dtype", "capability")}
    if subject.kind == "images":
        from torch_ferry.images import capture_images

        return capture_images(*subject.text.split(":", 1), **given)
    if subject.kind == "pipeline":
        from torch_ferry.diffusion import capture_pipeline

        return capture_pipeline(subject.contents(), name=subject.name, **given,
                                checkpointing=how["checkpointing"])
    from torch_ferry.by_name import capture_config

    return capture_config(subject.contents(), name=subject.name, code=subject.code, **how)


def _of_file(options, subject):
    from torch_ferry import capture

    capability = _capability(options)
    with contextlib.redirect_stdout(sys.stderr):  # what the file prints is not the path
        if subject.kind == "script":
            return capture.capture_script(subject.text, options.arguments,
                                          capability=capability)[0]
        return capture.capture_function(subject.text, batch=options.batch, tokens=options.tokens,
                                        dtype=options.dtype, capability=capability)


def _capability(options):
    return options.capability and tuple(map(int, options.capability.split(".")))


def _lora(option, text):
    """Returns (rank, names) of "16" or "16,q_proj,v_proj"."""
    if text is None:
        return None
    rank, *names = text.split(",")
    if not rank.isdecimal() or int(rank) == 0 or not all(names):
        raise Failure(f"{option} {text}: expected a rank, and names of linear layers if not all: "
                      "16 or 16,q_proj,v_proj", USAGE)
    return int(rank), tuple(names) or ("all",)


def _cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(home) / "ferry" / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot make the folder {folder}: {error.strerror}; XDG_CACHE_HOME names "
                      "another", RESOURCE_MISSING) from error
    return folder


def _versions(packages):
    """Returns what else decides a program. Ferry's own files count by their size and time."""
    found = []
    for package, why in packages:
        try:
            found.append(importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError as error:
            raise Failure(f"{why} needs the package {package}: pip install {package}",
                          RESOURCE_MISSING) from error
    ours = pathlib.Path(importlib.util.find_spec("torch_ferry").origin).parent
    files = sorted(ours.glob("*.py"))
    return [*found, [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]]


def _capture(make, path):
    """Writes the program that `make` returns to the path, whole or not at all."""
    import logging
    import warnings

    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    try:
        from torch_ferry import progress
        from torch_ferry.asking import where_raised
        from torch_ferry.fake_cuda import Unavailable
        from torch_ferry.program import CaptureError, ProgramError
    except ImportError as error:
        raise Failure(f"a model needs the package torch: {error}",
                      RESOURCE_MISSING) from error
    try:
        with progress.shown():
            program = make()
        progress.clear()
        program.write(path)
    except (CaptureError, ProgramError, Unavailable) as error:
        raise Failure(str(error), USAGE) from error
    except OSError as error:
        raise Failure(str(error), RESOURCE_MISSING) from error
    except ModuleNotFoundError as error:
        said = f"{where_raised(error)}: {error}: install that package" if error.name else str(error)
        raise Failure(said, RESOURCE_MISSING) from error
    except Exception as error:  # the library's code may raise anything on fake tensors
        raise Failure(f"{where_raised(error)}: {type(error).__name__}: {error}", USAGE) from error


if __name__ == "__main__":
    sys.exit(main())
