"""The modules of a model whose saved tensors stay on the device, above all the output head.

An output head saves large tensors (logits are as wide as the vocabulary), and backward needs them
first. To move them to the host and back would cost time and would not lower the peak.
"""

from torch import nn

from .offload import no_offload


def output_head(model):
    """Returns the module that makes the model's output, or None if the model has no known name.

    It looks for the same names as TRL's activation offloading, in the same order, so that both find
    the same heads: through wrappers (`module`; `base_model` of PEFT), then `output`, `lm_head`, the
    decoder's `output` or `lm_head`, a final norm, `head`. The first name that exists decides.
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
    """Returns the model inside DistributedDataParallel or a similar wrapper, and inside PEFT's."""
    model = getattr(model, "module", model)
    peft = hasattr(model, "peft_config") and hasattr(model, "base_model")
    return model.base_model if peft else model


def left_alone(model):
    """Returns the head, if there is one, and the modules that Liger's kernels replaced (they fuse
    the loss with the head)."""
    head = output_head(model)
    fused = [part for name, part in unwrapped(model).named_modules() if "liger" in name.lower()]
    return ([] if head is None else [head]) + [part for part in fused if part is not head]


def leave_alone(module):
    """Registers hooks so that nothing that the module's forward saves is offloaded. Returns their
    handles; `remove()` ends it."""
    guard = no_offload()

    def enter(*_):
        guard.__enter__()

    def leave(*_):
        guard.__exit__(None, None, None)

    return [module.register_forward_pre_hook(enter),
            module.register_forward_hook(leave, always_call=True)]
