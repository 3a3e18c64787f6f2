"""Plans a training step: compares ways to save memory, and takes the fastest that fits.

    plan = ferry.plan(model, inputs, loss_fn, card="rtx4090", budget="20GiB")
    print(plan)
    with ferry.execute(plan):
        loss = loss_fn(model(*inputs))
    loss.backward()

This module captures the step on fake tensors, and the command `ferry` of this package plans it.
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
from .old_names import renamed_value
from .program import CaptureError
from .sizes import size

_PROGRAM = pathlib.Path(_built.__file__).with_name("bin") / "ferry"
_OPTION = re.compile(
    "^--(budget|policy|optimizer|optimizer-implementation|microbatches|card):")
# Options in the answers of the command; `plan` has arguments for them.
_ADVICE = re.compile("--(policy|optimizer|optimizer-implementation) ([^ :,\n]+)")
# The same of a capture's error.
_ASSUME = re.compile("--assume (\\w+)")
_ALLOCATOR = "--alloc-conf expandable_segments:True"
_OUR_PARTS = ("\nFor the largest batch that fits call torch_ferry.plan in Python.",
              " --pareto searches for less.")
_STATE = {" (--optimizer-state host; ferry.optimizer in Python)": " (torch_ferry.optimizer)",
          " (--optimizer-state in-backward)": " (torch_ferry.optimizer(…, in_backward=True))"}

# The policies that are compared by default, and for "all". The RECOMPUTING ones are added if the
# model calls `torch_ferry.checkpoint`.
FIRST, FIRST_RECOMPUTING = ("keep", "offload", "best"), ("checkpoint",)
POLICIES = ("keep", "offload", "prefetch", "offload-some", "best")
OLD_POLICIES = {"budget": "offload-some"}
RECOMPUTING = ("checkpoint", "checkpoint-nth", "checkpoint-offload", "mixed")

# Exit codes of the command that are not a fault of Ferry.
_USAGE, _DOES_NOT_FIT, _RESOURCE_MISSING = 2, 3, 7


class DoesNotFit(ValueError):
    """No policy fits in the budget. The message says how much is missing, which changes would help
    (each of them is planned), and the largest batch that fits.

    `plan` is the Plan that needs the least memory, with the table of all policies. It can still be
    executed. It is None if the step exceeds the limits of the simulator.
    """

    def __init__(self, message, plan=None):
        super().__init__(message)
        self.plan = plan


class Plan:
    """A plan, with a table of what each policy needs and costs on a card.

    The plan is that of the fastest policy that fits or, if none fits, of the one that needs the
    least memory. `torch_ferry.execute` executes it. `print` shows the table, and a notebook shows
    it by itself.

    rows     a dict for each policy, in the order of `policies`. Bytes: "device_peak_bytes"
             (allocated), "device_reserved_bytes" (with fragmentation), "least_bytes" (the smallest
             memory in which it ran), "peak_bytes" (the peak, by kind), "host_peak_bytes",
             "offloaded_bytes", "reloaded_bytes". Nanoseconds: "step_ns", "compute_ns". "slowdown"
             is relative to keeping everything in unlimited memory, "overlap" is the fraction of the
             copy time in which the device computes (None without copies), "fits" is True if it
             fits in the budget, and "hazards" is the number of accesses that nothing puts in order
    policy   the policy whose plan this is
    row      the row of this policy
    program, card
             the names of the program and of the card
    budget   the device memory that it was planned for, in bytes
    answer   what to use, what it costs, and why nothing faster fits. If nothing fits: what is
             missing, and a line for each change that would help
    text     the plan as the text of a plan file
    conditions
             the conditions under which it was planned: mode, autocast, dtypes, inputs
    """

    conditions = None

    def __init__(self, table, text):
        self.rows = table["rows"]
        self.policy = table["written"]["policy"]
        self.program, self.card = table["program"], table["hardware"]
        self.budget = table["budget_bytes"]
        self.answer = _in_python(table["answer"])
        self.text = text
        self._carried_out = bool(table["next_steps"])  # False: everything is kept, or nothing fits

    @property
    def row(self):
        return next(row for row in self.rows if row["policy"] == self.policy)

    def save(self, path):
        """Writes the plan to a file. `torch_ferry.execute`, `ferry train` and `ferry simulate` read
        it."""
        pathlib.Path(path).write_text(self.text, encoding="utf-8")

    def understood(self):
        """Returns the plan as an object of the C++ core."""
        return _C.Plan.parse(self.text, f"the plan of {self.program}")

    def __str__(self):
        cells = [_HEAD, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join([line[0].ljust(widths[0]),
                            *(text.rjust(width) for text, width in zip(line[1:], widths[1:]))])
                 for line in cells]
        said = [self.answer] if self.answer else []
        typed = (["with torch_ferry.execute(plan): loss = …; then loss.backward()"] *
                 self._carried_out)
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
         optimizer_implementation=None, microbatches=1, device=None, name=None, assume=()):
    """Plans the training of `model` on a card. Returns a `Plan`, for `torch_ferry.execute`.

    The step is `loss_fn(model(*inputs)).backward()`, captured on fake tensors of the same shapes
    and dtypes. Nothing is computed or allocated, except what `torch_ferry.measured` lists. The
    model, its gradients and buffers, the inputs, other tensors and modules that the step uses, and
    the random generators stay as they are, also if the step raises.

    Plan under the same conditions as the training: the same `torch.autocast`, the same mode
    (`model.train()`), and inputs of the same shapes. A plan names each saved tensor, and a forward
    under `execute` raises `PlanMismatch` at the first tensor that differs.

    model      a torch.nn.Module
    inputs     the model's arguments: a tensor, a tuple of arguments, or a mapping of keywords
    loss_fn    a function that makes a scalar of the model's output. It is part of the step: call it
               under the guard as well
    card       a shipped card ("rtx4090", "a100", "h100": `ferry hardware` lists them), or the path
               of a hardware file
    budget     the device memory for the training: bytes, or text such as "20GiB". By default what
               the card leaves for a process
    policies   names of the policies to compare, or a single name, whose plan is returned. By
               default "keep", "offload" and "best"; if the model calls `torch_ferry.checkpoint`
               also "checkpoint", which recomputes these calls. "all" adds "prefetch" and
               "offload-some", and for such a model "checkpoint-nth", "checkpoint-offload" and
               "mixed". "best" recomputes some of these calls; for other models it recomputes any
               operators, and no module is edited
    optimizer  the optimizer whose state and step are part of the training: one of torch.optim, or
               "adamw", "adam", "momentum", "sgd" or None. ("adamw_torch_fused" works as well.)
    optimizer_implementation
               as in torch.optim: "foreach", "for-loop" or "fused". By default that of the
               optimizer; for a name "fused", as in Hugging Face's Trainer
    microbatches
               the number of forwards whose gradients are accumulated for one optimizer step
    device     "cpu" or "cuda": the device on which the step will run, because kernels save
               different tensors on a CPU and on a GPU. By default the device of the model
    name       the name of the program in the table; by default the class of the model
    assume     assumptions about values that a capture does not know: "zeros", "balanced". The error
               of a step that needs one names it

    Raises ValueError for an unknown card or policy or an unreadable budget, `DoesNotFit` (a
    ValueError) if no policy fits in the budget, `torch_ferry.capture.CaptureError` if the step
    cannot be captured, and RuntimeError if the package was built without the command.
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
        try:
            return capture.capture(model, some, loss, name=name or type(model).__name__,
                                   device=device, capability=request.capability, assume=assume)
        except CaptureError as error:
            error.args = (_ASSUME.sub(r'assume=["\1"]', str(error)),)
            raise

    return request.planned(captured, batch, conditions)


def _names(policies):
    if isinstance(policies, str):
        policies = (policies,)
    return policies and tuple(renamed_value("policy", each, OLD_POLICIES) for each in policies)


class Request:
    """The options of a plan, checked before a step is captured, because a capture takes longer."""

    def __init__(self, card, budget, policies, optimizer, implementation, microbatches,
                 clips=False):
        self.card, self.capability = os.fspath(card), _capability(_hardware(os.fspath(card)))
        self.policies = _names(policies)
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
        """Returns the Plan of the step; `captured()` captures it and returns a program.

        If nothing fits, it also captures the step with fewer samples than `batch`, by
        `captured(size)`, and raises DoesNotFit."""
        program = captured()
        if "checkpoints" in program.about:  # they always recompute, and hide what they save
            raise CaptureError(
                "the model calls torch.utils.checkpoint, and a plan cannot control which of these "
                "calls are recomputed: call torch_ferry.checkpoint in its place; for a Hugging "
                "Face model, torch_ferry.transformers.use_checkpoint(model) does that")
        policies = _policies(self.policies, program)
        with tempfile.TemporaryDirectory(prefix="torch_ferry.") as folder:
            step, out = pathlib.Path(folder, "step.jsonl"), pathlib.Path(folder, "plan.json")
            program.write(step)
            # The allocator options of this process are fixed, so a plan must not change them.
            code, table, said = _ferry("plan", step, *self.options, "--no-expandable",
                                       "--policy=" + ",".join(policies), "--json", "-o", out)
            made = Plan(table, out.read_text(encoding="utf-8")) if out.exists() else None
        if made:
            made.conditions = conditions
        # The code also means that the plan saves nothing.
        if code == _DOES_NOT_FIT and not (made and made.row["fits"]):
            if not made:
                raise DoesNotFit(said)
            parts = [f"{made.program} on {made.card}: {made.answer}",
                     self._largest_batch(captured, batch, made)]
            raise DoesNotFit("\n".join(filter(None, parts)), made)
        return made

    def _largest_batch(self, captured, batch, made):
        """Returns a sentence about the largest batch that fits; "" if the step has no batch."""
        if not batch or batch == 1:
            return ""
        try:
            size, needed = batches.largest(lambda count: self._least(captured(count)), batch,
                                           made.row["least_bytes"], made.budget)
        except Exception as error:  # not what the user asked for, so the sentence only reports it
            return ("The largest batch was not found: with fewer samples the step raised "
                    f"{type(error).__name__}: {_first_line(error)}")
        if not size:
            return f"No smaller batch fits: one sample needs {_bytes(needed)}."
        return f"The largest batch that fits is {size} of these {batch}: it needs {_bytes(needed)}."

    def _least(self, program):
        """Returns the bytes that the most saving policy needs, and True if one policy fits."""
        offload = ["offload"] + ["checkpoint-offload"] * _calls_checkpoint(program)
        with tempfile.TemporaryDirectory(prefix="torch_ferry.") as folder:
            step = pathlib.Path(folder, "step.jsonl")
            program.write(step)
            # Searching for the best plan takes longer, so only where offloading does not fit.
            rows = self._rows("simulate", step, "--policy=" + ",".join(offload))
            if not any(row["fits"] for row in rows) and self._asks_for_best():
                rows += self._rows("plan", step, "--policy=best", "--no-expandable")
        return (min(row["least_bytes"] for row in rows), any(row["fits"] for row in rows))

    def least(self, program):
        """Returns the bytes that the step needs under the most saving policy that was asked for,
        and True if one of them fits."""
        if self.policies is None or self._asks_for_best():
            return self._least(program)
        with tempfile.TemporaryDirectory(prefix="torch_ferry.") as folder:
            step = pathlib.Path(folder, "step.jsonl")
            program.write(step)
            rows = self._rows("simulate", step, "--policy=" + ",".join(self.policies))
        return (min(row["least_bytes"] for row in rows), any(row["fits"] for row in rows))

    def _rows(self, command, step, *options):
        return _ferry(command, step, *self.options, *options, "--unchecked", "--json")[1]["rows"]

    def _asks_for_best(self):
        return self.policies is None or bool({"all", "best"} & set(self.policies))


def _first_line(error, most=200):
    return str(error).partition("\n")[0][:most]


def _hardware(card):
    """Returns what `ferry hardware --json` prints for a card."""
    return _ferry("hardware", "--json", "--", card)[1]["hardware"][0]


def _check_names(policies):
    """Raises the command's error for an unknown policy, before a step is captured."""
    if policies is None:
        return
    try:
        # The command checks the names before it looks for the program.
        _ferry("simulate", "no.jsonl", "--card=h100", "--policy=" + ",".join(policies))
    except ValueError as error:
        if str(error).startswith("policy:"):
            raise


def _capability(hardware):
    """Returns (9, 0) for the number 90 in the JSON; None if the card's file has none."""
    return divmod(hardware["compute_capability"], 10) if hardware["compute_capability"] else None


def _calls_checkpoint(program):
    return any("arguments" in line and line.get("called", True)
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
    """Returns the command's answer with arguments of `plan` in place of options."""
    for part in _OUR_PARTS:
        answer = answer.replace(part, "")
    for typed, called in _STATE.items():
        answer = answer.replace(typed, called)
    answer = answer.replace("a smaller --budget", "a smaller budget").replace(
        _ALLOCATOR, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment")
    names = {"policy": "policies", "optimizer-implementation": "optimizer_implementation"}
    return _ADVICE.sub(lambda match: f'{names.get(match[1], match[1])}="{match[2]}"', answer)


def _ferry(*arguments):
    """Runs the command. Returns (code, JSON, messages): its exit code, which is 0 or that nothing
    fits, the JSON that it printed, and its messages. Other exit codes raise with the messages."""
    if not _PROGRAM.exists():
        raise RuntimeError(
            f"there is no command `ferry` in this torch_ferry ({_PROGRAM}): packages that it needs "
            "were missing when torch_ferry was built. In the source tree, `pip install -v "
            "--no-build-isolation .` names these packages")
    with subprocess.Popen([_PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace") as program:
        try:
            printed, complained = program.communicate()
        except BaseException:  # such as Ctrl-C; subprocess.run would kill it and not wait
            program.kill()
            program.wait()
            raise
    said = "\n".join(line.removeprefix("ferry: ") for line in complained.splitlines())
    code = program.returncode
    if code in (0, _DOES_NOT_FIT):
        is_json = "--json" in arguments and printed
        return code, json.loads(printed) if is_json else None, said
    if code == _USAGE:
        raise ValueError(_OPTION.sub(r"\1:", said))  # arguments have the names of the options
    if code == _RESOURCE_MISSING:
        raise OSError(said)
    raise RuntimeError(said or f"the command `ferry` ended with {code}")


_HEAD = ("policy", "needs", "allocated", "reserved", "host", "step", "slowdown", "overlap", "fits",
         "hazards")


def _cells(row):
    """Returns the cells of a row as `ferry plan` prints them."""
    def number(value):
        return "-" if value is None else f"{value:.3f}"
    if row["errors"]:  # the training did not end, so there are no numbers for it
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
    """Returns the value with three digits, in the largest unit that it reaches."""
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
