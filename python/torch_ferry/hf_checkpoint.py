"""Makes the gradient checkpointing of Hugging Face's models call `torch_ferry.checkpoint`.

    use_checkpoint(model)
    model.activation_checkpointing_enable()   # or by the Trainer: TrainingArguments, SFTConfig

The layers call a function that `activation_checkpointing_enable` (`gradient_checkpointing_enable`
before transformers 5.23) passes to them through one method of the model,
`_set_gradient_checkpointing`. It is `torch.utils.checkpoint.checkpoint` with the user's arguments.
This module replaces the method, on the given model only. Then a plan can choose which layers are
recomputed.
"""

import functools
import types

from torch.utils.checkpoint import checkpoint as pytorchs

from .checkpoint import checkpoint

_METHOD = "_set_gradient_checkpointing"
_CALLED = "_gradient_checkpointing_func"


def use_checkpoint(model):
    """Makes the model's gradient checkpointing call `torch_ferry.checkpoint`.

    The checkpointing may be enabled before this call or after it. Gradients stay the same bits.
    Returns a function that ends it.

    Raises ValueError if the model has no gradient checkpointing of Hugging Face, or offloads what
    it saves by itself (`activation_checkpointing_enable(offload=True)`)."""
    if not (models := of_hugging_face(model)):
        raise ValueError(f"{type(model).__name__} has no gradient checkpointing of Hugging Face: "
                         "call torch_ferry.checkpoint in the model's code")
    for part in model.modules():
        if _CALLED in vars(part):
            setattr(part, _CALLED, _ours(getattr(part, _CALLED)))
    for part in models:
        setattr(part, _METHOD, types.MethodType(_set_gradient_checkpointing, part))
    return functools.partial(_undo, model)


def of_hugging_face(model):
    """Returns the modules whose gradient checkpointing is Hugging Face's, enabled or not."""
    return [part for part in model.modules() if hasattr(part, _METHOD)]


def calls_ours(model):
    """Returns True if `use_checkpoint` is in force."""
    return any(_METHOD in vars(part) for part in of_hugging_face(model))


def _set_gradient_checkpointing(self, enable=True, gradient_checkpointing_func=pytorchs, **more):
    method = getattr(type(self), _METHOD)
    method(self, enable=enable, gradient_checkpointing_func=_ours(gradient_checkpointing_func),
           **more)


def _ours(function):
    """Returns our function for one of theirs. It is made once, and its `theirs` is the original."""
    if function is pytorchs:
        return checkpoint
    called = getattr(function, "func", None)  # set if it is a functools.partial
    if function is checkpoint or called is checkpoint:
        return function
    if called is not pytorchs:
        raise ValueError("the model's gradient checkpointing does not call torch.utils.checkpoint "
                         f"itself, but {function!r}: leave offload=True out; a plan or "
                         "torch_ferry.offload moves the saved tensors")
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
