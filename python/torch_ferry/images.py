"""Captures a training step of an image classifier of torchvision or timm, from its name alone.

    capture_images("torchvision", "resnet50", batch=32).write("resnet50.jsonl")

The model is made of fake tensors, with the library's default settings and without weights. The step
is the cross entropy of a batch of images of the size that the model was made for. GoogLeNet and
Inception v3 have further classifiers, whose losses are added with the weights of their papers.

Not here: detection and video, which take other inputs, and augmentations of the batch.
"""

import torch
from torch import nn

from .few_layers import captured
from .program import CaptureError

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
_SIZE = 224
# Weight of the further classifiers, by the model's name.
_FURTHER = {"googlenet": 0.3, "inception_v3": 0.4}


def capture_images(library, name, batch=1, tokens=None, dtype=None, capability=None):
    """Returns the `torch_ferry.program.Program` of one training step.

    library     "torchvision" or "timm"
    name        the name of a model, as torchvision.models.get_model and timm.create_model take it
    tokens      height and width of the images; by default those that the model was made for
    dtype       of the weights: "bf16", "f16" or "f32" (the default)
    capability  the compute capability of the card, such as (9, 0)

    Raises CaptureError if the library has no such classifier of images."""
    def make():
        model, size = _MAKERS[library](name)
        size = tokens or size
        model = model.to(DTYPES[dtype or "f32"])
        images = torch.zeros(batch, 3, size, size, dtype=DTYPES[dtype or "f32"])
        labels = torch.zeros(batch, dtype=torch.int64)
        about = {"model": f"{library} {name}", "batch": str(batch), "dtype": dtype or "f32",
                 "image": f"3x{size}x{size}"}
        return _Classifier(model, _FURTHER.get(name, 0)), (images, labels), about

    return captured(make, lambda loss: loss, name=name, capability=capability)


class _Classifier(nn.Module):
    """A model with its loss."""

    def __init__(self, model, further):
        super().__init__()
        self.model, self.further = model, further

    def forward(self, images, labels):
        made = self.model(images)
        if isinstance(made, torch.Tensor) and made.dim() == 2:
            return nn.functional.cross_entropy(made, labels)
        if not (isinstance(made, tuple) and self.further):
            raise CaptureError(f"{type(self.model).__name__} is no classifier of images: capture "
                               "your script")
        first, *others = (nn.functional.cross_entropy(each, labels) for each in made
                          if each is not None)
        return first + self.further * sum(others)


def _of_torchvision(name):
    from torchvision import models

    known = models.list_models(module=models)
    if name not in known:
        raise CaptureError(_unknown("torchvision", name, known))
    weights = models.get_model_weights(name).DEFAULT
    size = weights.transforms().crop_size[0] if weights else _SIZE
    return models.get_model(name, weights=None), size


def _of_timm(name):
    import timm

    if not timm.is_model(name.partition(".")[0]):
        raise CaptureError(_unknown("timm", name, timm.list_models()))
    model = timm.create_model(name, pretrained=False)
    return model, model.pretrained_cfg.get("input_size", (3, _SIZE, _SIZE))[-1]


def _unknown(library, name, known):
    import difflib

    like = difflib.get_close_matches(name, known)
    return (f"{library} has no classifier of images named {name!r}"
            + (f": expected {', '.join(like)}, or another" if like else ""))


_MAKERS = {"torchvision": _of_torchvision, "timm": _of_timm}
