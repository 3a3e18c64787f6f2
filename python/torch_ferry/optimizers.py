"""Which optimizer a plan is for, by the ways in which people name one: the command's words, an
optimizer of torch.optim or its class, or what Hugging Face's `optim=` says.

What decides is the state that it keeps for each parameter, and what its step takes for a moment:
`foreach` AdamW a list as large as the parameters, `fused` nothing.
"""

_CLASSES = {"AdamW": "adamw", "Adam": "adam", "SGD": "sgd"}
_WORDS = ("adamw", "adam", "momentum", "sgd", "none")
_HUGGING_FACES = {"adamw_torch": ("adamw", "foreach"), "adamw_torch_fused": ("adamw", "fused")}


def understood(optimizer, implementation=None):
    """(name, implementation) as the command has them.

    Without an implementation a name's is "fused", Trainer's default, and an optimizer's its own.
    Raises ValueError for what a plan knows no state of."""
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
    optimizer = getattr(optimizer, "optimizer", optimizer)  # accelerate's has PyTorch's within
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
    """As torch.optim picks it on CUDA, by an optimizer's settings."""
    if settings.get("fused"):
        return "fused"
    return "for-loop" if settings.get("foreach") is False else "foreach"


def _unknown(what):
    return (f"optimizer: a plan does not know what {what} keeps: expected AdamW, Adam or SGD of "
            "torch.optim, or the nearest of \"adamw\" (two numbers a parameter), \"momentum\" "
            "(one), \"sgd\" and None (nothing)")
