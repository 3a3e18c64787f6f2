"""Makes the program of a model that `ferry plan` was asked for by name, and prints its path.

    python -m ferry_command.model SUBJECT [--tokens N] [--batch N] [--dtype D] [--attention A]
                                  [--lora R[,LAYER…]] [--checkpointing] [--capability X.Y]

The command starts this program for "hf:ORG/NAME", for a config.json, and for a script, which is
captured each time, as it may depend on anything. Programs of models are cached by all that they
depend on: the configuration, the options, and the versions of Ferry, torch and transformers. So a
second question needs no torch, which takes seconds to import.

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

from ferry_command.names import RESOURCE_MISSING, USAGE, Failure, config_of

# The cache keeps this many programs; each has about 1 MB.
_KEPT = 64
_INTERRUPTED = 130


def main(words=None):
    options = _parser().parse_args(words)
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
    parser.add_argument("subject")
    for name, kind in (("tokens", int), ("batch", int), ("dtype", str), ("attention", str),
                       ("lora", str), ("capability", str)):
        parser.add_argument(f"--{name}", type=kind)
    parser.add_argument("--checkpointing", action="store_true")
    return parser


def _program(options):
    """Returns the path of the program; captures it if it is not in the cache."""
    if options.subject.endswith(".py"):
        return _of_script(options)
    name, config = config_of(options.subject)
    how = {"batch": options.batch or 1, "tokens": options.tokens, "dtype": options.dtype,
           "attention": options.attention, "lora": _lora(options.lora),
           "checkpointing": options.checkpointing, "capability": _capability(options)}
    key = json.dumps([name, config, how, _versions()], sort_keys=True)
    path = _cache() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.jsonl"
    if path.exists():
        path.touch()
        return path

    def make():
        from torch_ferry.by_name import capture_config

        return capture_config(config, name=name, **how)

    _capture(make, path)
    for old in sorted(path.parent.glob("*.jsonl"), key=os.path.getmtime)[:-_KEPT]:
        old.unlink(missing_ok=True)
    return path


def _of_script(options):
    typed = [f"--{name}" for name in ("tokens", "batch", "dtype", "attention", "lora",
                                      "checkpointing") if getattr(options, name)]
    if typed:
        raise Failure(f"{typed[0]} is for a model by its name; a script says this itself", USAGE)
    path = _cache() / f"script-{os.getpid()}.jsonl"

    def make():
        from torch_ferry.capture import capture_script

        with contextlib.redirect_stdout(sys.stderr):  # what the script prints is not the path
            return capture_script(options.subject, capability=_capability(options))[0]

    _capture(make, path)
    return path


def _capability(options):
    return options.capability and tuple(map(int, options.capability.split(".")))


def _lora(text):
    """Returns (rank, names) of "16" or "16,q_proj,v_proj"."""
    if text is None:
        return None
    rank, *names = text.split(",")
    if not rank.isdecimal() or int(rank) == 0 or not all(names):
        raise Failure(f"--lora {text}: expected a rank, and names of linear layers if not all: "
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


def _versions():
    """Returns what else decides a program. Ferry's own files count by their size and time."""
    found = []
    for package in ("torch", "transformers"):
        try:
            found.append(importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError as error:
            raise Failure(f"a model by its name needs the package {package}: pip install "
                          f"{package}", RESOURCE_MISSING) from error
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
        raise Failure(str(error), RESOURCE_MISSING) from error
    try:
        with progress.shown():
            program = make()
        progress.clear()
        program.write(path)
    except (CaptureError, ProgramError, Unavailable) as error:
        raise Failure(str(error), USAGE) from error
    except OSError as error:
        raise Failure(str(error), RESOURCE_MISSING) from error
    except Exception as error:  # the library's code may raise anything on fake tensors
        raise Failure(f"{where_raised(error)}: {type(error).__name__}: {error}", USAGE) from error


if __name__ == "__main__":
    sys.exit(main())
