"""Captures a training step of a Hugging Face model, from its config.json alone.

    capture_config(config, tokens=4096, batch=1, lora=(16, ("all",))).write("qwen.jsonl")

The model is made of fake tensors by the class that the configuration names, so no weights are
needed and nothing is allocated. The step is that of a Trainer: labels, a mask of ones, and a loss
that is divided by the number of labels; fused AdamW and clipped gradients are noted for the plan.
Models of many equal layers are captured with a few of them (`torch_ferry.few_layers`).

Not here: code of the hub, quantised weights, and images or sound for a language model that takes
them too (it gets text alone, and the program says so).
"""

import inspect

import torch

from . import lora as adapters
from .capture import capture, fake_mode
from .few_layers import Cut
from .program import CaptureError
from .repeat import NotAlike

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# Sequences are at most this long by default, and shorter if the model takes no more.
TOKENS = 2048


class UnknownModel(CaptureError):
    """The installed transformers does not know this model."""


def capture_config(config, name="model", batch=1, tokens=None, dtype=None, attention=None,
                   lora=None, checkpointing=False, capability=None):
    """Returns the `torch_ferry.program.Program` of one training step.

    config         the contents of a config.json, as a dict
    batch, tokens  sequences in a batch, and tokens in each; for images their height and width
    dtype          of the weights: "bf16", "f16" or "f32"; by default what the configuration says
    attention      "sdpa", "eager", or another implementation that transformers has
    lora           (rank, names of linear layers), where ("all",) means all but the output head
    checkpointing  True: each layer is checkpointed, as by gradient_checkpointing_enable()
    capability     the compute capability of the card, such as (9, 0)

    Raises UnknownModel, and CaptureError if the step cannot be captured."""
    def step(few):
        with fake_mode():
            model, inputs, about = _made(config, batch, tokens, dtype, attention)
            if lora:
                adapters.adapt(model, _targets(model, lora[1]), rank=lora[0])
                about["lora"] = f"rank {lora[0]} on {', '.join(lora[1])}"
            if checkpointing:
                _checkpoint(model)
            cut = Cut(model) if few else None
        about |= {"optimizer": "adamw fused", "clipped": "clip_grad_norm_"}
        program = capture(model.train(), inputs, lambda output: output.loss, name=name,
                          about=about, assume=("balanced",), capability=capability)
        return cut.program(program) if few else program

    try:
        return step(few=True)
    except (NotAlike, IndexError):  # a model may count its layers by its configuration
        return step(few=False)


def _made(config, batch, tokens, dtype, attention):
    """Returns the model, its inputs, and texts about it."""
    import transformers

    made, kind = _class_of(config)
    made.use_cache = False
    options = {"attn_implementation": attention} if attention else {}
    weights = DTYPES.get(dtype) or _dtype(made)
    model = kind._from_config(made, dtype=weights, **options)
    about = {"model": config.get("_name_or_path") or kind.__name__, "class": kind.__name__,
             "batch": str(batch), "dtype": str(weights).removeprefix("torch."),
             "transformers": transformers.__version__}
    inputs = _inputs(model, kind.__name__, batch, tokens, about)
    if "kwargs" in inspect.signature(model.forward).parameters and "input_ids" in inputs:
        inputs["num_items_in_batch"] = torch.tensor(batch * inputs["labels"].shape[-1])
    return model, inputs, about


def _class_of(config):
    """Returns the configuration object and the class of the model."""
    import transformers
    from transformers.models.auto import configuration_auto, modeling_auto

    kind = config.get("model_type")
    if not kind:
        raise UnknownModel('expected a configuration of transformers with "model_type"')
    if kind not in configuration_auto.CONFIG_MAPPING_NAMES:
        raise UnknownModel(
            f"transformers {transformers.__version__} has no model_type {kind!r}: update "
            "transformers, or capture your script (python -m torch_ferry.capture train.py …)")
    made = configuration_auto.CONFIG_MAPPING[kind].from_dict(config)
    names = [name for name in config.get("architectures") or () if hasattr(transformers, name)]
    if names and not names[0].endswith("Model"):
        return made, getattr(transformers, names[0])
    for heads in (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
                  modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
                  modeling_auto.MODEL_FOR_MASKED_LM_MAPPING,
                  modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
                  modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING):
        if type(made) in heads:
            return made, heads[type(made)]
    raise UnknownModel(f"the model_type {kind!r} has no class with a loss: name one in "
                       '"architectures", or capture your script')


def _dtype(config):
    """Returns the dtype of the weights that from_pretrained loads."""
    said = getattr(config, "dtype", None)
    text = getattr(config, "text_config", None)
    if said is None and text is not None:
        said = getattr(text, "dtype", None)
    if isinstance(said, str):
        said = getattr(torch, said, None)
    return said or torch.float32


def _inputs(model, kind, batch, size, about):
    config = model.config
    names = inspect.signature(model.forward).parameters
    if "pixel_values" in names and "input_ids" not in names:
        image = size or getattr(config, "image_size", None) or 224
        image = image if isinstance(image, int) else image[0]
        about["image"] = f"{config.num_channels}x{image}x{image}"
        return {"pixel_values": torch.zeros(batch, config.num_channels, image, image,
                                            dtype=model.dtype),
                "labels": torch.zeros(batch, dtype=torch.int64)}
    if "input_ids" not in names:
        raise UnknownModel(f"{kind} takes neither input_ids nor pixel_values: capture your script")
    text = config.get_text_config()
    most = getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None)
    tokens = size or min(TOKENS, most or TOKENS)
    if most and tokens > most and not getattr(text, "rope_parameters", None):
        raise CaptureError(f"--tokens {tokens}: the model has positions for {most}")
    about["tokens"] = str(tokens)
    if any(name.startswith("pixel_values") for name in names):
        about["inputs"] = "text alone, no images"
    each = torch.zeros(batch, tokens, dtype=torch.int64)
    inputs = {"input_ids": each, "attention_mask": torch.ones(batch, tokens, dtype=torch.int64)}
    if "start_positions" in names:
        one = torch.zeros(batch, dtype=torch.int64)
        return {**inputs, "start_positions": one, "end_positions": one.clone()}
    whole = not kind.endswith(("SequenceClassification", "MultipleChoice"))
    return {**inputs, "labels": each.clone() if whole else torch.zeros(batch, dtype=torch.int64)}


def _targets(model, names):
    """Returns the last parts of the names of the linear layers to adapt."""
    linear = {name.rpartition(".")[2]: layer for name, layer in model.named_modules()
              if isinstance(layer, torch.nn.Linear)}
    if tuple(names) == ("all",):
        head = model.get_output_embeddings()
        return tuple(name for name, layer in linear.items() if layer is not head)
    if unknown := sorted(set(names) - set(linear)):
        raise CaptureError(f"--lora: no linear layer is named {unknown[0]!r}; expected some of "
                           f"{', '.join(sorted(linear))}")
    return tuple(names)


def _checkpoint(model):
    if not model.supports_gradient_checkpointing:
        raise CaptureError(f"--checkpointing: {type(model).__name__} does not support it")
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
