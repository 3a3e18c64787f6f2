"""Captures a training step of a diffusers pipeline, from the folder of the pipeline alone.

    capture_pipeline({"class": "UNet2DConditionModel", "config": {…}, "pipeline": "…"}, batch=4)

Trained is the part that removes noise: the U-Net or the transformer. The step is that of the
library's example scripts: noisy latents of the images, a time for each, embedded prompts, and the
mean squared error to the noise. Latents and prompts are inputs, because those scripts can make them
before the training: the memory of the text encoder and of the VAE is not in the program.

Not here: pipelines of video and sound, and adapters.
"""

import torch
from torch import nn

from .few_layers import captured
from .program import CaptureError

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# Pixels for each latent, in height and in width.
_SCALE = 8
# Tokens of a prompt: of CLIP, of CLIP and T5 for Stable Diffusion 3, of T5 for Flux.
_CLIP, _CLIP_AND_T5, _T5 = 77, 333, 512


def capture_pipeline(part, name="pipeline", batch=1, tokens=None, dtype=None, checkpointing=False,
                     capability=None):
    """Returns the `torch_ferry.program.Program` of one training step.

    part           {"class": a model of diffusers, "config": the contents of its config.json,
                   "pipeline": the class of the pipeline}
    batch, tokens  images in a batch, and their height and width; by default those of the model
    dtype          of the weights: "bf16", "f16" or "f32" (the default)
    checkpointing  True: blocks are checkpointed, as by enable_gradient_checkpointing()
    capability     the compute capability of the card, such as (9, 0)

    Raises CaptureError if the part is none that is known here."""
    weights = DTYPES[dtype or "f32"]
    if part["class"] not in _INPUTS:
        raise CaptureError(f"the step of a {part['class']} is not known: expected "
                           f"{', '.join(_INPUTS)}; or capture your script")

    def make():
        import diffusers

        model = getattr(diffusers, part["class"]).from_config(part["config"]).to(weights)
        if checkpointing:
            model.enable_gradient_checkpointing()
        size = tokens or _SCALE * _sample_size(model.config)
        if size % (2 * _SCALE):
            raise CaptureError(f"--tokens {size}: expected a height and width that "
                               f"{2 * _SCALE} divides")
        inputs, noise = _INPUTS[part["class"]](model.config, batch, size // _SCALE, weights)
        about = {"model": f"{part['pipeline']}: {part['class']}", "batch": str(batch),
                 "dtype": dtype or "f32", "image": f"{size}x{size}",
                 "diffusers": diffusers.__version__}
        return _Denoiser(model), {"noise": noise, **inputs}, about

    return captured(make, lambda loss: loss, name=name, capability=capability)


class _Denoiser(nn.Module):
    """A model with its loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, noise, **inputs):
        made = self.model(**inputs, return_dict=False)[0]
        return nn.functional.mse_loss(made.float(), noise.float(), reduction="mean")


def _sample_size(config):
    size = config.get("sample_size") or 64
    return size if isinstance(size, int) else size[0]


def _zeros(*shape, like):
    return torch.zeros(*shape, dtype=like)


def _of_unet(config, batch, size, dtype):
    shape = batch, config.in_channels, size, size
    inputs = {"sample": _zeros(*shape, like=dtype),
              "timestep": torch.zeros(batch, dtype=torch.int64),
              "encoder_hidden_states": _zeros(batch, _CLIP, _width(config), like=dtype)}
    if config.addition_embed_type == "text_time":  # Stable Diffusion XL
        times = 6 * config.addition_time_embed_dim
        text = config.projection_class_embeddings_input_dim - times
        inputs["added_cond_kwargs"] = {"text_embeds": _zeros(batch, text, like=dtype),
                                       "time_ids": _zeros(batch, 6, like=dtype)}
    return inputs, _zeros(batch, config.out_channels, size, size, like=dtype)


def _width(config):
    width = config.cross_attention_dim
    return width if isinstance(width, int) else width[0]


def _of_sd3(config, batch, size, dtype):
    shape = batch, config.in_channels, size, size
    return {"hidden_states": _zeros(*shape, like=dtype),
            "timestep": torch.zeros(batch, dtype=torch.int64),
            "encoder_hidden_states": _zeros(batch, _CLIP_AND_T5, config.joint_attention_dim,
                                            like=dtype),
            "pooled_projections": _zeros(batch, config.pooled_projection_dim, like=dtype),
            }, _zeros(*shape, like=dtype)


def _of_flux(config, batch, size, dtype):
    count = (size // 2) ** 2  # a token has two by two latents
    inputs = {"hidden_states": _zeros(batch, count, config.in_channels, like=dtype),
              "timestep": _zeros(batch, like=dtype),
              "encoder_hidden_states": _zeros(batch, _T5, config.joint_attention_dim, like=dtype),
              "pooled_projections": _zeros(batch, config.pooled_projection_dim, like=dtype),
              "img_ids": _zeros(count, 3, like=dtype), "txt_ids": _zeros(_T5, 3, like=dtype)}
    if config.guidance_embeds:
        inputs["guidance"] = _zeros(batch, like=dtype)
    return inputs, _zeros(batch, count, config.in_channels, like=dtype)


_INPUTS = {"UNet2DConditionModel": _of_unet, "SD3Transformer2DModel": _of_sd3,
           "FluxTransformer2DModel": _of_flux}
