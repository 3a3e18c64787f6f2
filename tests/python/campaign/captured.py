"""Captures the models of zoo.py, and prints a table of RESULTS.md: what is captured, what is
refused and why, and what is saved, beside what the virtual GPU saves.

    captured.py [NAME…] [--ferry FERRY]      all models where none is named

With FERRY each model's step also runs as it is on the virtual GPU, without values, and its saved
bytes are compared. Exit codes: 0 they agree, 1 they do not.
"""

import argparse
import json
import logging
import os
import pathlib
import re
import subprocess
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [os.environ.get("FERRY_PYTHON_PACKAGE") or str(ROOT / "python"),
                str(ROOT / "python"), str(pathlib.Path(__file__).parent)]

import torch

import zoo

HEAD = ("| model | captured | ops | saved tensors | saved, besides parameters | virtual GPU |\n"
        "|---|---|---|---|---|---|")


def captured(name):
    """(Program, "") or (None, why not)."""
    from torch_ferry import capture
    function, assumed = zoo.MODELS[name]
    try:
        with capture.cuda():
            with capture.fake_mode(assumed), torch.device("cuda"):
                made = function()
            return capture.capture(*made, name=name, assume=assumed), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


class Saved:
    """Counts what autograd saves on a device: tensors, and bytes of storages besides parameters."""

    def __init__(self, module):
        self.parameters = {p.untyped_storage().data_ptr() for p in module.parameters()}
        self.tensors, self.storages = 0, {}

    def pack(self, tensor):
        self.tensors += 1
        storage = tensor.untyped_storage()
        if tensor.device.type == "cuda" and storage.data_ptr() not in self.parameters:
            self.storages[storage.data_ptr()] = storage  # alive, so that no other has its address
        return tensor


def on_the_virtual_gpu(name):
    """Runs in its process: prints what one step saves."""
    function, _ = zoo.MODELS[name]
    torch.backends.cuda.enable_cudnn_sdp(False)  # as captures take attention
    with torch.device("cuda"):
        module, inputs, loss_fn = function()
        saved = Saved(module)
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda tensor: tensor):
            loss = loss_fn(module(**inputs) if isinstance(inputs, dict) else module(*inputs))
        loss.backward()
    print(json.dumps({"tensors": saved.tensors,
                      "bytes": sum(s.nbytes() for s in saved.storages.values())}))


def beside(ferry, name):
    try:
        done = subprocess.run([ferry, "run", "--python", sys.executable, "--hide-gpu",
                               "--no-values", "--zeros", "--card", "h200", __file__, "--here",
                               name], capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return None, "more than ten minutes"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        said = [line for line in done.stderr.splitlines()
                if re.match(r"[\w.]*(Error|Exception)", line)]
        return None, (said or [f"exit {done.returncode}"])[-1]
    return json.loads(lines[-1]), ""


def row(ferry, name):
    """(its line, whether both agree)."""
    from torch_ferry.summary import mebibytes, summarize
    program, why = captured(name)
    cells, agree = [name], True
    if program is None:
        return f"| {name} | no: {why} | | | | |", True
    summary = summarize(program)
    assumed = [key for key in program.about if key.startswith("assumed")]
    cells += ["yes" + "".join(f", {key}" for key in assumed),
              f"{summary.ops_forward}, {summary.ops_backward}", str(summary.saved_tensors),
              mebibytes(summary.saved_bytes)]
    if ferry:
        seen, why = beside(ferry, name)
        if seen is None:
            cells.append(f"not run: {why}")
        else:
            agree = same = seen["bytes"] == summary.saved_bytes
            by = seen["bytes"] / max(summary.saved_bytes, 1) - 1
            cells.append("the same" if same else f"{mebibytes(seen['bytes'])} ({100 * by:+.2f} %)")
    return "| " + " | ".join(cells) + " |", agree


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ferry")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    if options.here:
        on_the_virtual_gpu(options.here)
        return 0
    print(HEAD, flush=True)
    wrong = 0
    for name in options.names or zoo.MODELS:
        line, agree = row(options.ferry, name)
        wrong += not agree
        print(line, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
