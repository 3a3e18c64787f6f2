"""The parts of a model whose saved tensors are left where they are: its output head above all.

What a head saves is large (logits are as wide as the vocabulary) and is wanted at once, for
backward begins there: to move it away only to fetch it again costs time and saves nothing at the
peak.
"""

from torch import nn

from .offload import no_offload


def output_head(model):
    """The module that makes the model's output; None where no known name fits.

    Looks where TRL's activation offloading looks, in its order, so that the same models have the
    same heads: through wrappers (`module`; `base_model` of PEFT), then `output`, `lm_head`, the
    decoder's `output` or `lm_head`, a final norm, `head`. The first name that is there decides.
    """
    model = unwrapped(model)
    if hasattr(model, "output"):
        for found in (model.output, getattr(model.output, "linear", None)):
            if isinstance(found, nn.Module):
                return found
        return None
    if hasattr(model, "lm_head"):
        return model.lm_head
    if hasattr(model, "decoder"):
        return getattr(model.decoder, "output", None) or getattr(model.decoder, "lm_head", None)
    for name in ("final_layer_norm", "ln_f"):
        if getattr(model, name, None) is not None:
            return getattr(model, name)
    head = getattr(model, "head", None)
    return head if isinstance(head, nn.Module) else None


def unwrapped(model):
    """The model inside DistributedDataParallel and its like, and inside PEFT's."""
    model = getattr(model, "module", model)
    peft = hasattr(model, "peft_config") and hasattr(model, "base_model")
    return model.base_model if peft else model


def left_alone(model):
    """The head, where there is one, and the modules that Liger's kernels replaced (they fuse the
    loss with the head)."""
    head = output_head(model)
    fused = [part for name, part in unwrapped(model).named_modules() if "liger" in name.lower()]
    return ([] if head is None else [head]) + [part for part in fused if part is not head]


def leave_alone(module):
    """Nothing that the module's forward saves is offloaded. Returns the handles of its hooks, whose
    `remove()` ends that."""
    guard = no_offload()

    def enter(*_):
        guard.__enter__()

    def leave(*_):
        guard.__exit__(None, None, None)

    return [module.register_forward_pre_hook(enter),
            module.register_forward_hook(leave, always_call=True)]
