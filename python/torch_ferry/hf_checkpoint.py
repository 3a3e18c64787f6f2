"""`torch_ferry.checkpoint` in the place of the checkpoints of Hugging Face's models.

    use_checkpoint(model)
    model.activation_checkpointing_enable()   # or by the Trainer: TrainingArguments, SFTConfig

Their layers call a function that `activation_checkpointing_enable` (`gradient_checkpointing_enable`
before transformers 5.23) hands to them through one method of the model,
`_set_gradient_checkpointing`: `torch.utils.checkpoint.checkpoint` with what it was told. This
stands in for that method, on the model alone. A plan can then say which of the layers run again.
"""

import functools
import types

from torch.utils.checkpoint import checkpoint as pytorchs

from .checkpoint import checkpoint

_METHOD = "_set_gradient_checkpointing"
_CALLED = "_gradient_checkpointing_func"


def use_checkpoint(model):
    """The model's gradient checkpointing calls `torch_ferry.checkpoint`, as it is now and however
    it is enabled later. Gradients are the same bits. Returns a function that ends it.

    Raises ValueError for a model that has no such checkpoints, or moves what they save by itself
    (`activation_checkpointing_enable(offload=True)`)."""
    if not (models := of_hugging_face(model)):
        raise ValueError(f"{type(model).__name__} has no gradient checkpointing of Hugging Face's: "
                         "call torch_ferry.checkpoint in its code")
    for part in model.modules():
        if _CALLED in vars(part):
            setattr(part, _CALLED, _ours(getattr(part, _CALLED)))
    for part in models:
        setattr(part, _METHOD, types.MethodType(_set_gradient_checkpointing, part))
    return functools.partial(_undo, model)


def of_hugging_face(model):
    """The parts that have checkpoints of Hugging Face's, or may have."""
    return [part for part in model.modules() if hasattr(part, _METHOD)]


def calls_ours(model):
    """Whether `use_checkpoint` is in force."""
    return any(_METHOD in vars(part) for part in of_hugging_face(model))


def _set_gradient_checkpointing(self, enable=True, gradient_checkpointing_func=pytorchs, **more):
    method = getattr(type(self), _METHOD)
    method(self, enable=enable, gradient_checkpointing_func=_ours(gradient_checkpointing_func),
           **more)


def _ours(function):
    """Made once for each of theirs, and knows it."""
    if function is pytorchs:
        return checkpoint
    called = getattr(function, "func", None)  # of a functools.partial
    if function is checkpoint or called is checkpoint:
        return function
    if called is not pytorchs:
        raise ValueError("the model's gradient checkpointing does not call torch.utils.checkpoint "
                         f"itself, but {function!r}: leave offload=True out, for a plan or "
                         "torch_ferry.offload moves what is saved")
    if not hasattr(function, "ours"):
        function.ours = functools.partial(checkpoint, *function.args, **function.keywords)
        function.ours.theirs = function
    return function.ours


def _undo(model):
    for part in model.modules():
        vars(part).pop(_METHOD, None)
        if _CALLED in vars(part):
            called = getattr(part, _CALLED)
            setattr(part, _CALLED,
                    pytorchs if called is checkpoint else getattr(called, "theirs", called))
