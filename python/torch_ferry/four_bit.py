"""The four-bit weights of bitsandbytes, for stream_weights.

A layer is quantized when it comes to a device for the first time. Its `quant_state` stays there: a
byte for each 64 weights. Source: bitsandbytes 0.50 (nn/modules.py, autograd/_functions.py).
"""

import sys


def is_one(p):
    return type(p).__name__ == "Params4bit"


def place(unit, device):
    """Moves the four-bit layers of a unit to the device, by their own rules."""
    layers = [module for module in unit.modules() if is_one(getattr(module, "weight", None))]
    for layer in layers:
        if not layer.weight.bnb_quantized or layer.weight.device != device:
            layer.to(device)
    if layers:
        _save_through_hooks()


def _save_through_hooks():
    """Makes bitsandbytes save a weight for backward as PyTorch's own functions do. It keeps the
    tensor in an attribute, which hides it from saved-tensor hooks and keeps its bytes."""
    module = sys.modules.get("bitsandbytes.autograd._functions")
    function = getattr(module, "MatMul4Bit", None)
    if function is None or hasattr(function, "_ferry"):
        return
    forward, backward = function.forward, function.backward

    def saving_forward(ctx, *args, **options):
        output = forward(ctx, *args, **options)
        _, weight = getattr(ctx, "tensors", (None, None))
        if weight is not None:
            ctx.save_for_backward(weight)
            ctx.tensors = None, None
        return output

    def saving_backward(ctx, *gradients):
        saved = ctx.saved_tensors  # once: a checkpoint refuses a second look
        if saved:
            ctx.tensors = None, saved[0]
        try:
            return backward(ctx, *gradients)
        finally:
            ctx.tensors = None, None

    function.forward = staticmethod(saving_forward)
    function.backward = staticmethod(saving_backward)
    function._ferry = True
