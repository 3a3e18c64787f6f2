"""Runs a script of scripts.py, or the loop by hand, with Ferry's line or without."""

import dataclasses
import tempfile

import transformers

import torch_ferry as ferry
from campaign.fine_tunings import by_hand, scripts
from campaign.fine_tunings.watch import Watch
from torch_ferry.transformers import OffloadCallback, use_checkpoint

CARD = "rtx4090"
BY_HAND = "a loop by hand"


@dataclasses.dataclass
class Run:
    losses: list
    weights: dict
    watch: Watch
    plan: object = None


def with_trainer(make, options, **more):
    """One training. `options`: of OffloadCallback; None: without Ferry."""
    line = None if options is None else OffloadCallback(**options)
    with tempfile.TemporaryDirectory() as folder:
        trainer = make(folder, [] if line is None else [line], **more)
        trainer.remove_callback(transformers.PrinterCallback)
        watch = Watch()
        trainer.add_callback(watch.callback(trainer, line))
        trainer.train()
    if "training_step" in vars(trainer):
        watch.faults.append("the trainer is not as it was")
    losses = [line.get("loss", line.get("eval_loss")) for line in trainer.state.log_history]
    return Run(losses, weights_of(trainer.model), watch.end(), getattr(line, "plan", None))


def with_a_loop(options, **more):
    made = []

    def guard(model, batch, loss_of, optimizer):
        if options is None:
            return watch.nothing()
        if "card" not in options:
            return ferry.offload(exempt=model)
        if more["gradient_checkpointing"]:
            use_checkpoint(model)
        asked = {key: options[key] for key in ("card", "budget", "policies") if key in options}
        made.append(ferry.plan(model, batch, loss_of, optimizer=optimizer,
                               microbatches=scripts.AGAIN, **asked))
        return ferry.execute(made[0], other_shapes="offload", exempt=model,
                             disk=options.get("disk"))

    watch = Watch()
    losses, model = by_hand.loop(guard, watch, **more)
    return Run(losses, weights_of(model), watch.end(), *made)


def weights_of(model):
    return {name: each.detach().cpu().clone() for name, each in model.named_parameters()}


def run(name, options=None, checkpoints=False, **more):
    """`more`: arguments of the trainer's, or of the loop's."""
    more["gradient_checkpointing"] = checkpoints  # TRL's trainers have them on by default
    if name == BY_HAND:
        return with_a_loop(options, **more)
    return with_trainer(scripts.ROWS[name], options, **more)


def budget_of(name, checkpoints, **more):
    """One in which a plan has something to do; with checkpoints one that asks for more."""
    try:
        run(name, {"card": CARD, "budget": "1MiB"}, checkpoints, **more)
    except ferry.DoesNotFit as error:
        keep = next(row for row in error.plan.rows if row["policy"] == "keep")["least_bytes"]
        least = error.plan.row["least_bytes"]
        return least + (keep - least) // (8 if checkpoints else 2)
    raise AssertionError("a plan fits in 1 MiB")
