"""Captures a training step of a Hugging Face model, from its config.json alone.

    capture_config(config, tokens=4096, batch=1, lora=(16, ("all",))).write("qwen.jsonl")

The model is made of fake tensors by the class that the configuration names, so no weights are
needed and nothing is allocated. The step is that of a Trainer: labels, a mask of ones, and a loss
that is divided by the number of labels; fused AdamW and clipped gradients are noted for the plan.
With `trainer` it is that of TRL's SFTTrainer or DPOTrainer (`torch_ferry.trl_steps`). Models of
many equal layers are captured with a few of them (`torch_ferry.few_layers`).

Not here: images or sound for a language model that takes them too (it gets text alone, and the
program says so).
"""

import inspect

import torch

from . import capture
from . import lora as adapters
from . import nf4
from .few_layers import captured
from .program import CaptureError
from .segments import layers_are_marked

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# Sequences are at most this long by default, and shorter if the model takes no more.
TOKENS = 2048


class UnknownModel(CaptureError):
    """The installed transformers does not know this model."""


def capture_config(config, name="model", batch=1, tokens=None, dtype=None, attention=None,
                   lora=None, quantized=False, checkpointing=False, trainer="trainer", code=None,
                   capability=None):
    """Returns the `torch_ferry.program.Program` of one training step.

    config         the contents of a config.json, as a dict
    batch, tokens  sequences in a batch, and tokens in each; for images their height and width
    dtype          of the weights: "bf16", "f16" or "f32"; by default what the configuration says
    attention      "sdpa", "eager", or another implementation that transformers has
    lora           (rank, names of linear layers), where ("all",) means all but the output head
    quantized      True: the adapted model's weights have four bits (`torch_ferry.nf4`)
    checkpointing  True: each layer is checkpointed, as by gradient_checkpointing_enable()
    trainer        whose step: "trainer", "sft" or "dpo"
    code           (repository or folder, revision) of code that may run, or None
    capability     the compute capability of the card, such as (9, 0)

    Raises UnknownModel, and CaptureError if the step cannot be captured."""
    def make():
        model, inputs, about = _made(config, batch, tokens, dtype, attention, code, trainer)
        about |= {"optimizer": "adamw fused", "clipped": "clip_grad_norm_"}
        if lora:
            _adapt(model, lora, quantized, trainer, about)
        if checkpointing or quantized or trainer != "trainer":
            _checkpoint(model)
        if trainer == "sft":
            model = trl_steps.Sft(model)
        if trainer == "dpo":
            reference = None if lora else _made(config, 1, tokens, dtype, attention, code)[0]
            model = trl_steps.Dpo(model, reference)
        return model, inputs, about

    if trainer == "trainer":
        with layers_are_marked():
            return captured(make, lambda output: output.loss, name=name, capability=capability)
    from . import trl_steps

    with trl_steps.kernels_stood_in_for(), capture.cuda():
        return captured(make, lambda loss: loss, name=name, capability=capability)


def _made(config, batch, tokens, dtype, attention, code, trainer="trainer"):
    """Returns the model, its inputs, and texts about it."""
    import transformers

    made, kind = _class_of(config) if code is None else _class_in(config, code)
    made.use_cache = False
    options = {"attn_implementation": attention} if attention else {}
    weights = DTYPES.get(dtype) or _dtype(made)
    model = kind._from_config(made, dtype=weights, **options)
    about = {"model": config.get("_name_or_path") or kind.__name__, "class": kind.__name__,
             "batch": str(batch), "dtype": str(weights).removeprefix("torch."),
             "transformers": transformers.__version__}
    if trainer != "trainer":
        about["trainer"] = {"sft": "SFTTrainer", "dpo": "DPOTrainer"}[trainer]
    sequences = 2 * batch if trainer == "dpo" else batch
    inputs = _inputs(model, kind.__name__, sequences, tokens, about)
    if "kwargs" in inspect.signature(model.forward).parameters and "input_ids" in inputs:
        # A Trainer divides the count, which makes it a float.
        inputs["num_items_in_batch"] = torch.tensor(
            float(sequences * inputs["labels"].shape[-1]))
    return model, inputs, about


def _class_of(config):
    """Returns the configuration object and the class of the model."""
    import transformers
    from transformers.models.auto import configuration_auto, modeling_auto

    kind = config.get("model_type")
    if not kind:
        raise UnknownModel('expected a configuration of transformers with "model_type"')
    if kind not in configuration_auto.CONFIG_MAPPING_NAMES and config.get("auto_map"):
        raise UnknownModel(f"the code of the model_type {kind!r} is in its repository: read it, "
                           "and run it with --trust")
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


def _class_in(config, code):
    """Returns the same from the code of a repository or folder, which runs."""
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    classes = config.get("auto_map") or {}
    head = next((name for name in ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM",
                                   "AutoModelForMaskedLM", "AutoModelForImageClassification",
                                   "AutoModelForSequenceClassification") if name in classes), None)
    if head is None:  # --trust is no harm where there is no code
        return _class_of(config)
    where, revision = code

    def find(name):
        return get_class_from_dynamic_module(classes[name], where, revision=revision)

    if "AutoConfig" in classes:
        return find("AutoConfig").from_dict(config), find(head)
    return _class_of({**config, "architectures": None})[0], find(head)


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


def _adapt(model, lora, quantized, trainer, about):
    """Adds adapters, to weights of four bits if they are quantized. Without TRL these are prepared
    as PEFT's guide has it; TRL leaves them as they are, and its adapters are bfloat16 then."""
    rank, names = lora
    targets = _targets(model, names)
    own = torch.float32
    if quantized:
        nf4.quantize(model)
        if trainer == "trainer":
            nf4.prepare(model)
        else:
            own = torch.bfloat16
        about["weights"] = "NF4, double quantization"
    adapters.adapt(model, targets, rank=rank, dtype=own)
    about["lora"] = f"rank {rank} on {', '.join(names)}"


def _targets(model, names):
    """Returns the last parts of the names of the linear layers to adapt."""
    linear = {name.rpartition(".")[2]: layer for name, layer in model.named_modules()
              if isinstance(layer, torch.nn.Linear)}
    if tuple(names) == ("all",):
        head = model.get_output_embeddings()
        return tuple(name for name, layer in linear.items() if layer is not head)
    if unknown := sorted(set(names) - set(linear)):
        raise CaptureError(f"--lora, --qlora: no linear layer is named {unknown[0]!r}; expected some of "
                           f"{', '.join(sorted(linear))}")
    return tuple(names)


def _checkpoint(model):
    if not model.supports_gradient_checkpointing:
        raise CaptureError(f"--checkpointing: {type(model).__name__} does not support it")
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
