"""The steps of TRL's SFTTrainer and DPOTrainer, for a model that is captured by its name.

Both run the model under bfloat16 autocast and checkpoint its layers, which are TRL's defaults, and
take the logarithms of probabilities from the installed TRL: its fused output head
(`add_fused_lm_head`) makes the logits in tiles and never all of them. SFT's loss is the mean of the
labels' negative logarithms. DPO's batch is pairs, of which the chosen ones come first; the
reference is a second model, or the same one without its adapters, and runs without gradients.

The Triton kernels that fold a tile allocate nothing. A capture cannot run Triton, so a kernel is
stood in for by an operator that reads and writes the tile.

Not here: metrics, of some numbers a sequence, and other losses than the defaults.
"""

import contextlib
import types
from unittest import mock

import torch
from torch import nn

from .lora import without_adapters
from .program import CaptureError

_BETA = 0.1
_SFT = ("log_probs", "entropy", "is_top1")
_DPO = ("log_probs", "entropy", "mean_logits", "is_top1")


class Sft(nn.Module):
    """A model with the loss of SFTTrainer."""

    def __init__(self, model):
        super().__init__()
        self.model = _with_fused_head(model, _SFT)

    def forward(self, num_items_in_batch=None, **inputs):
        made = _autocast(self.model, inputs)
        count = made.label_mask.sum() if num_items_in_batch is None else num_items_in_batch
        return -made.log_probs.sum() / count.clamp(min=1)


class Dpo(nn.Module):
    """A model with the loss of DPOTrainer. `reference` is None if the model has adapters."""

    def __init__(self, model, reference):
        super().__init__()
        self.model = _with_fused_head(model, _DPO)
        if reference is not None:
            self.reference = _with_fused_head(reference.requires_grad_(False), ("log_probs",))

    def forward(self, num_items_in_batch=None, **inputs):
        scores = _log_ratios(_autocast(self.model, inputs).log_probs)
        with torch.no_grad():
            if hasattr(self, "reference"):
                expected = _log_ratios(_autocast(self.reference.eval(), inputs).log_probs)
            else:
                with without_adapters(self.model):
                    expected = _log_ratios(_autocast(self.model, inputs).log_probs)
        chosen, rejected = (scores - expected).chunk(2)
        return -nn.functional.logsigmoid(_BETA * (chosen - rejected)).mean()


def _autocast(model, inputs):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(**inputs, use_cache=False, fused_lm_head=True)


def _log_ratios(log_probs):
    return log_probs.sum(dim=1)


def _with_fused_head(model, outputs):
    from trl.trainer.utils import add_fused_lm_head

    if model.get_output_embeddings() is None:
        raise CaptureError(f"--sft and --dpo: {type(model).__name__} is no language model")
    add_fused_lm_head(model, outputs=outputs)
    return model


@contextlib.contextmanager
def kernels_stood_in_for():
    """A context in which TRL's Triton kernels are operators that a capture sees."""
    try:
        from trl.kernels import chunked_logprob as kernels
        from trl.trainer.utils import add_fused_lm_head as _
    except ImportError as error:
        lacking = f"the package {error.name} is missing" \
            if isinstance(error, ModuleNotFoundError) and error.name else str(error)
        raise ModuleNotFoundError(
            "--sft and --dpo need TRL 1.16 or a later one, and what its trainers import: pip "
            f"install trl datasets ({lacking})") from error
    with mock.patch.multiple(kernels, _TRITON_AVAILABLE=True, _forward_kernel=_Fold(),
                             _backward_kernel=_Fold(),
                             triton=types.SimpleNamespace(cdiv=lambda one, by: -(-one // by))):
        yield


class _Fold:
    """Stands for a Triton kernel: its first argument is the tile."""

    def __getitem__(self, _):
        return lambda tile, *args, **kwargs: tile.neg_()
