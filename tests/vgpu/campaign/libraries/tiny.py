"""A tiny GPT-2, its data, and whether one run's tensors are another's."""

import os
import pathlib
import sys

import torch

# published/given.py is beside this folder.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "published"))

from given import told  # noqa: E402, F401

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch.set_num_threads(1)
VOCABULARY, LENGTH = 128, 32


def gpt2(layers=2):
    """Without dropout: what is drawn on a GPU is not what is drawn on the CPU."""
    import transformers
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=layers, n_head=2, n_embd=64, n_positions=LENGTH, vocab_size=VOCABULARY,
        attn_implementation="eager", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0))


def tokens(number):
    return torch.arange(LENGTH).add(7 * number).remainder(VOCABULARY)


def rows(count):
    return [{"input_ids": tokens(i), "labels": tokens(i)} for i in range(count)]


def weights(model):
    return [parameter.detach().cpu() for parameter in model.parameters()]


def gradients(model):
    return [parameter.grad.cpu() for parameter in model.parameters()]
