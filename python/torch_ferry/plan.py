"""Planning a training step: what each way of saving memory needs and costs, and the fastest that
fits.

    plan = ferry.plan(model, inputs, loss_fn, card="rtx4090", budget="20GiB")
    print(plan)
    with ferry.run(plan):
        loss = loss_fn(model(*inputs))
    loss.backward()

The step is captured here, on fake tensors, and planned by the command `ferry` of this package.
"""

import collections.abc
import html
import json
import os
import pathlib
import re
import subprocess
import tempfile

from . import _C, _built, batches, optimizers
from .mismatch import Conditions, autocast_on, device_of
from .program import CaptureError
from .sizes import size

_PROGRAM = pathlib.Path(_built.__file__).with_name("bin") / "ferry"
_OPTION = re.compile(
    "^--(budget|policy|optimizer|optimizer-implementation|microbatches|card):")
# What an answer advises on the command line, as arguments of `plan`.
_ADVICE = re.compile("--(policy|optimizer|optimizer-implementation) ([^ :,\n]+)")
_ALLOCATOR = "--alloc-conf expandable_segments:True"
_OUR_PART = "\nFor the largest batch that fits call torch_ferry.plan in Python."

# What is compared where nobody asks for policies, and for "all"; and for a model that calls
# `torch_ferry.checkpoint` as well.
FIRST, FIRST_RECOMPUTING = ("keep", "offload", "best"), ("checkpoint",)
POLICIES = ("keep", "offload", "prefetch", "budget", "best")
RECOMPUTING = ("checkpoint", "checkpoint-nth", "checkpoint-offload", "mixed")

# Of the exit codes of the command, those that are not our own fault.
_USAGE, _DOES_NOT_FIT, _RESOURCE_MISSING = 2, 3, 7


class DoesNotFit(ValueError):
    """No policy fits in the budget. The message says what is missing, what would help, each way
    planned, and the largest batch that fits.

    `plan` is the Plan that needs least, with the table of all; it can be run all the same. None
    where the step was beyond the simulator's own limits.
    """

    def __init__(self, message, plan=None):
        super().__init__(message)
        self.plan = plan


class Plan:
    """What each policy needs and costs on a card, and the plan of the fastest that fits.

    `torch_ferry.run` executes it, `print` shows the table, and a notebook does so by itself.

    rows     a dict for each policy, in the order of `policies`. Bytes: "device_peak_bytes"
             (allocated), "device_reserved_bytes" (with fragmentation), "least_bytes" (the least
             memory that it was seen to run in), "peak_bytes" (the peak, by kind),
             "host_peak_bytes", "offloaded_bytes", "reloaded_bytes". Nanoseconds: "step_ns",
             "compute_ns". "slowdown" is relative to keeping everything in unlimited memory,
             "overlap" the share of copying that computing hides (None: no copies), "fits" whether
             it fits, "hazards" the number of accesses that nothing puts in order
    policy   the policy whose plan this is
    row      its row
    program, card
             their names
    budget   device memory that it was planned for, in bytes
    answer   what to use, what it costs, and why nothing faster fits: a sentence or two. Where
             nothing fits: what is missing, and a line for each way that would help
    text     the plan, as a file has it
    conditions
             what the step ran under when it was planned: mode, autocast, dtypes, inputs
    """

    conditions = None

    def __init__(self, table, text):
        self.rows = table["rows"]
        self.policy = table["written"]["policy"]
        self.program, self.card = table["program"], table["hardware"]
        self.budget = table["budget_bytes"]
        self.answer = _in_python(table["answer"])
        self.text = text
        self._carried_out = bool(table["next_steps"])  # else everything is kept, or nothing fits

    @property
    def row(self):
        return next(row for row in self.rows if row["policy"] == self.policy)

    def save(self, path):
        """Writes the plan to a file, for `torch_ferry.run`, `ferry train` and `ferry simulate`."""
        pathlib.Path(path).write_text(self.text, encoding="utf-8")

    def understood(self):
        """As the core has it."""
        return _C.Plan.parse(self.text, f"the plan of {self.program}")

    def __str__(self):
        cells = [_HEAD, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join([line[0].ljust(widths[0]),
                            *(text.rjust(width) for text, width in zip(line[1:], widths[1:]))])
                 for line in cells]
        said = [self.answer] if self.answer else []
        typed = ["with torch_ferry.run(plan): loss = …; then loss.backward()"] * self._carried_out
        return "\n".join([self._title(), "", *lines, "", f"planned: {self.policy}", *said, *typed])

    def __repr__(self):
        return f"<torch_ferry.Plan: {self._title()}: {self.policy}>"

    def _repr_html_(self):
        lines = [_line("th", _HEAD)]
        for row in self.rows:
            lines.append(_line("td", _cells(row), bold=row["policy"] == self.policy))
        return (f"<table><caption>{html.escape(self._title())}</caption>\n"
                + "\n".join(lines) + "\n</table>\n<p>"
                + html.escape(self.answer).replace("\n", "<br>") + "</p>")

    def _title(self):
        return f"{self.program} on {self.card}, budget {_bytes(self.budget)}"


def plan(model, inputs, loss_fn, *, card, budget=None, policies=None, optimizer="adamw",
         optimizer_implementation=None, microbatches=1, device=None, name=None):
    """Plans the training of `model` on a card: a `Plan`, for `torch_ferry.run`.

    The step is `loss_fn(model(*inputs)).backward()`, captured on fake tensors of the same shapes
    and dtypes: nothing is computed or allocated (but what `torch_ferry.measured` says), and the
    model, its gradients and buffers, the inputs, other tensors and modules that the step uses, and
    the random generators stay as they are, also where it raises. Capture under what training runs
    under (`torch.autocast`, say), in the same mode (`model.train()`), and with inputs of the same
    shapes: a plan names each saved tensor, and `run` raises `PlanMismatch` at the first that is
    another.

    model      a torch.nn.Module
    inputs     its arguments: a tensor, a tuple of arguments, or a mapping of keywords
    loss_fn    what makes a scalar of the module's output. It is part of the step: call it under
               the guard as well
    card       a shipped card ("rtx4090", "a100", "h100": `ferry hardware` lists them), or the path
               of a hardware file
    budget     device memory that the training is to run in: bytes, or text such as "20GiB". By
               default what the card leaves a process
    policies   names of those that are compared, or one name; with one alone, its plan. By default
               "keep", "offload" and "best", and of a model that calls `torch_ferry.checkpoint` also
               "checkpoint", which recomputes these calls. "all" is also "prefetch" and "budget",
               and "checkpoint-nth", "checkpoint-offload" and "mixed". "best" recomputes some of
               these calls; of other models it recomputes any operators, and no module is edited
    optimizer  whose state and step are part of the training: one of torch.optim, or "adamw",
               "adam", "momentum", "sgd", None. ("adamw_torch_fused" is understood as well.)
    optimizer_implementation
               as torch.optim's: "foreach", "for-loop" or "fused"; by default the optimizer's own,
               and where there is a name alone "fused", as of Hugging Face's Trainer
    microbatches
               gradients are accumulated over so many forwards
    device     where the step will run, for kernels save different tensors on a CPU and on a GPU:
               "cpu" or "cuda"; where the model is by default
    name       of the program, in the table; the class of the model by default

    Raises ValueError for a card, a budget or a policy that is none, `DoesNotFit` (a ValueError)
    where no policy fits in the budget, `torch_ferry.capture.CaptureError` for a step that cannot be
    captured, and RuntimeError where the command was not built with the package.
    """
    import torch
    from . import capture

    request = Request(card, budget, policies, optimizer, optimizer_implementation, microbatches)
    if isinstance(inputs, collections.abc.Mapping):
        inputs = dict(inputs)
    elif not isinstance(inputs, (tuple, list)):
        inputs = (inputs,)
    device = device_of(model) if device is None else torch.device(device).type
    conditions = Conditions.of(model, inputs, autocast_on(device), device)
    batch = batches.batch_of(inputs)

    def captured(size=batch):
        some, loss = inputs, loss_fn
        if size != batch:
            some = batches.cut(inputs, batch, size)
            loss = batches.cut_function(loss_fn, batch, size)
        return capture.capture(model, some, loss, name=name or type(model).__name__,
                               device=device, capability=request.capability)

    return request.planned(captured, batch, conditions)


class Request:
    """What is asked of the command, understood before a step is captured, which takes longer."""

    def __init__(self, card, budget, policies, optimizer, implementation, microbatches,
                 clips=False):
        self.card, self.capability = os.fspath(card), _capability(_hardware(os.fspath(card)))
        self.policies = (policies,) if isinstance(policies, str) else policies
        _check_names(self.policies)
        optimizer, implementation = optimizers.understood(optimizer, implementation)
        self.options = [f"--card={self.card}", "--no-modules"]
        if budget is not None:
            self.options.append(f"--budget={size(budget, 'budget')}")
        self.options += [f"--optimizer={optimizer}",
                         f"--optimizer-implementation={implementation}"]
        if microbatches != 1:
            self.options.append(f"--microbatches={microbatches}")
        self.options += ["--clip-grad-norm"] * clips

    def planned(self, captured, batch, conditions):
        """The Plan of the step `captured()`, a program. Where nothing fits it is captured with
        fewer samples than `batch`, too, as `captured(size)`."""
        program = captured()
        if "checkpoints" in program.about:  # which recompute in any case, and hide what they save
            raise CaptureError(
                "the model calls torch.utils.checkpoint, and a plan cannot say which of these "
                "calls are recomputed as it runs: call torch_ferry.checkpoint in its place; of a "
                "Hugging Face model, torch_ferry.transformers.use_checkpoint(model) does so")
        policies = _policies(self.policies, program)
        with tempfile.TemporaryDirectory(prefix="torch_ferry.") as folder:
            step, out = pathlib.Path(folder, "step.jsonl"), pathlib.Path(folder, "plan.json")
            program.write(step)
            # The allocator of this process is set already: no plan for another one.
            code, table, said = _ferry("plan", step, *self.options, "--no-expandable",
                                       "--policy=" + ",".join(policies), "--json", "-o", out)
            made = Plan(table, out.read_text(encoding="utf-8")) if out.exists() else None
        if made:
            made.conditions = conditions
        if code == _DOES_NOT_FIT and not (made and made.row["fits"]):  # or it saves nothing
            if not made:
                raise DoesNotFit(said)
            parts = [f"{made.program} on {made.card}: {made.answer}",
                     self._largest_batch(captured, batch, made)]
            raise DoesNotFit("\n".join(filter(None, parts)), made)
        return made

    def _largest_batch(self, captured, batch, made):
        """A sentence; "" where the step has no batch."""
        if not batch or batch == 1:
            return ""
        try:
            size, needed = batches.largest(lambda count: self._least(captured(count)), batch,
                                           made.row["least_bytes"], made.budget)
        except Exception as error:  # it is no answer to what was asked
            return ("The largest batch was not found: with fewer samples the step raised "
                    f"{type(error).__name__}: {_first_line(error)}")
        if not size:
            return f"No smaller batch fits: one sample needs {_bytes(needed)}."
        return f"The largest batch that fits is {size} of these {batch}: it needs {_bytes(needed)}."

    def _least(self, program):
        """What the policies that save most need, and whether one of them fits."""
        policies = ["offload"] + ["checkpoint-offload"] * _calls_checkpoint(program)
        with tempfile.TemporaryDirectory(prefix="torch_ferry.") as folder:
            step = pathlib.Path(folder, "step.jsonl")
            program.write(step)
            rows = _ferry("simulate", step, *self.options, "--policy=" + ",".join(policies),
                          "--unchecked", "--json")[1]["rows"]
        return (min(row["least_bytes"] for row in rows), any(row["fits"] for row in rows))


def _first_line(error, most=200):
    return str(error).partition("\n")[0][:most]


def _hardware(card):
    """What `ferry hardware` has of it."""
    return _ferry("hardware", "--json", "--", card)[1]["hardware"][0]


def _check_names(policies):
    """Raises what the command says of a name that is no policy's, before a step is captured."""
    if policies is None:
        return
    try:
        # It looks at names before it looks for the program.
        _ferry("simulate", "no.jsonl", "--card=h100", "--policy=" + ",".join(policies))
    except ValueError as error:
        if str(error).startswith("policy:"):
            raise


def _capability(hardware):
    """(9, 0) of the number that JSON has; None where the card's file says none."""
    return divmod(hardware["compute_capability"], 10) if hardware["compute_capability"] else None


def _calls_checkpoint(program):
    return any(line.get("enter", "").startswith("checkpoint.") and "arguments" in line
               for line in program.codes[1].statements)


def _policies(asked, program):
    calls = _calls_checkpoint(program)
    if asked is None:
        return FIRST + FIRST_RECOMPUTING * calls
    if list(asked) == ["all"]:
        return POLICIES + RECOMPUTING * calls
    vain = [] if calls else [policy for policy in asked if policy in RECOMPUTING]
    if vain:
        raise ValueError(f"policy {vain[0]!r} recomputes calls of torch_ferry.checkpoint, and the "
                         "model makes none")
    return asked


def _in_python(answer):
    """What the command says, with arguments in place of its options."""
    answer = answer.replace(_OUR_PART, "").replace(
        _ALLOCATOR, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment")
    names = {"policy": "policies", "optimizer-implementation": "optimizer_implementation"}
    return _ADVICE.sub(lambda match: f'{names.get(match[1], match[1])}="{match[2]}"', answer)


def _ferry(*arguments):
    """The exit code of the command, 0 or that nothing fits; what it printed, of JSON; and what it
    said. Raises what it says for the other codes."""
    if not _PROGRAM.exists():
        raise RuntimeError(
            f"there is no command `ferry` in this torch_ferry ({_PROGRAM}): what it needs was not "
            "there when the package was built. In its source tree, `pip install -v "
            "--no-build-isolation .` names the packages")
    with subprocess.Popen([_PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace") as program:
        try:
            printed, complained = program.communicate()
        except BaseException:  # Ctrl-C: subprocess.run would not wait for the end of what it kills
            program.kill()
            program.wait()
            raise
    said = "\n".join(line.removeprefix("ferry: ") for line in complained.splitlines())
    code = program.returncode
    if code in (0, _DOES_NOT_FIT):
        is_json = "--json" in arguments and printed
        return code, json.loads(printed) if is_json else None, said
    if code == _USAGE:
        raise ValueError(_OPTION.sub(r"\1:", said))  # options are arguments here, named alike
    if code == _RESOURCE_MISSING:
        raise OSError(said)
    raise RuntimeError(said or f"the command `ferry` ended with {code}")


_HEAD = ("policy", "needs", "allocated", "reserved", "host", "step", "slowdown", "overlap", "fits",
         "hazards")


def _cells(row):
    """Of a row, as `ferry plan` prints them."""
    def number(value):
        return "-" if value is None else f"{value:.3f}"
    if row["errors"]:  # what is of a part of the training is not told
        return (row["policy"], *["-"] * 7, "failed", str(row["hazards"]))
    fits = "useless" if row["useless"] else "yes" if row["fits"] else "no"
    needs = "-" if row["least_bytes"] is None else _bytes(row["least_bytes"])
    return (row["policy"], needs, _bytes(row["device_peak_bytes"]),
            _bytes(row["device_reserved_bytes"]), _bytes(row["host_peak_bytes"]),
            _time(row["step_ns"]), number(row["slowdown"]), number(row["overlap"]), fits,
            str(row["hazards"]))


def _line(tag, cells, bold=False):
    open_, close = (f"<{tag}><b>", f"</b></{tag}>") if bold else (f"<{tag}>", f"</{tag}>")
    return "<tr>" + "".join(open_ + html.escape(cell) + close for cell in cells) + "</tr>"


def _bytes(count):
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB"))


def _time(ns):
    return _scaled(ns, 1000, ("ns", "us", "ms", "s"))


def _scaled(value, step, units):
    """Three digits, in the largest unit that it reaches."""
    reached = 0
    while reached + 1 < len(units) and value >= step ** (reached + 1):
        reached += 1
    factor = step ** reached
    whole = value // factor
    scale = 100 if whole < 10 else 10 if whole < 100 else 1
    if factor == 1 or scale == 1:
        return f"{(value + factor // 2) // factor} {units[reached]}"
    scaled = (value * scale + factor // 2) // factor
    return f"{scaled // scale}.{scaled % scale:0{len(str(scale)) - 1}} {units[reached]}"
