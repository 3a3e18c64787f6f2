"""Finds the optimizer that a plan is for, from the ways in which users name one.

These are the names of the command, an optimizer of torch.optim or its class, and the values of
Hugging Face's `optim=`. A plan needs to know the state for each parameter, and the temporary memory
of an optimizer step: `foreach` AdamW needs a list as large as the parameters, `fused` nothing.
"""

_CLASSES = {"AdamW": "adamw", "Adam": "adam", "SGD": "sgd"}
_WORDS = ("adamw", "adam", "momentum", "sgd", "none")
_HUGGING_FACES = {"adamw_torch": ("adamw", "foreach"), "adamw_torch_fused": ("adamw", "fused")}


def understood(optimizer, implementation=None):
    """Returns (name, implementation) as the command's options have them.

    By default the implementation is "fused" for a name, as in Hugging Face's Trainer, and the
    optimizer's own for an optimizer. Raises ValueError if the optimizer's state is not known."""
    if optimizer is None:
        optimizer = "none"
    own = "fused"
    if isinstance(optimizer, str):
        name, own = _HUGGING_FACES.get(optimizer, (optimizer, own))
        if name not in _WORDS:
            raise ValueError(_unknown(repr(optimizer)))
    else:
        name, own = _of_torch(optimizer)
    return name, implementation or own


def _of_torch(optimizer):
    optimizer = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps PyTorch's optimizer
    kind = optimizer if isinstance(optimizer, type) else type(optimizer)
    name = next((_CLASSES[base.__name__] for base in kind.__mro__
                 if base.__name__ in _CLASSES and base.__module__.startswith("torch.")), None)
    if name is None:
        raise ValueError(_unknown(kind.__name__))
    if optimizer is kind:
        return name, "fused"
    settings = {**optimizer.defaults, **optimizer.param_groups[0]}
    if name == "sgd" and settings.get("momentum"):
        name = "momentum"
    return name, implementation_of(settings)


def implementation_of(settings):
    """Returns the implementation that torch.optim uses on CUDA with these settings."""
    if settings.get("fused"):
        return "fused"
    return "for-loop" if settings.get("foreach") is False else "foreach"


def _unknown(what):
    return (f"optimizer: the state of {what} is not known: expected AdamW, Adam or SGD of "
            "torch.optim, or the most similar of \"adamw\" (two numbers for each parameter), "
            "\"momentum\" (one), \"sgd\" and None (nothing)")
