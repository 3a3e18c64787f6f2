"""What a training of `ferry train` starts from: its weights, and the batch of each step.

The weights are in the state that --save writes: a line of JSON and an archive of LibTorch's, which
torch.jit.load reads (real/train/checkpoint.h). A batch is drawn from the seed and the step's number
as real/train/text.cpp and real/train/random.h do.
"""

import io
import json
import warnings

import torch

MASK = (1 << 64) - 1


def read_state(path):
    """The shape and the settings of a training, and its weights by name, on the CPU."""
    with open(path, "rb") as file:
        training = json.loads(file.readline())["training"]
        with warnings.catch_warnings():  # it is deprecated, and what reads such an archive
            warnings.simplefilter("ignore", DeprecationWarning)
            archive = torch.jit.load(io.BytesIO(file.read()), map_location="cpu")
    model = archive.model
    weights = {name: tensor.detach() for name, tensor in model.named_parameters()}
    weights.update(model.named_buffers())
    return shape_of(training), weights


def shape_of(training):
    """The header's texts as what they are; what it leaves out is the default's."""
    def number(option, default=None):
        return int(training.get(option, default))

    shape = {"model": training["model"], "dtype": training.get("--dtype", "f32"),
             "lr": float(training["--lr"])}
    for name in ("layers", "width", "heads", "context", "batch", "seed"):
        shape[name] = number("--" + name)
    shape["vocabulary"] = number("--vocabulary", 256)
    if shape["model"] == "llama":
        shape["kv_heads"], shape["hidden"] = number("--kv-heads"), number("--hidden")
        shape["untied"] = training["--untied"] == "yes"
    return shape


def refusal(training):
    """Why the field cannot run this training; None where it can."""
    if training["model"] not in ("gpt", "llama"):
        return f"expected gpt or llama, found {training['model']}"
    if training.get("--dropout", "0") != "0":
        return "expected --dropout 0: Python draws other random numbers"
    if training.get("--microbatches", "1") != "1":
        return "expected --microbatches 1: the rows in Python take a batch at once"
    return None


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Random:
    """SplitMix64, a stream of it for each seed and number."""

    def __init__(self, seed, stream):
        self.state = mix(seed) ^ mix(~stream & MASK)

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        return (mix(self.state) >> 32) * n >> 32


def text_batch(text, shape, step):
    """Input and target, int64 [batch, context]; `text` is uint8 [bytes]."""
    random = Random(shape["seed"], step)
    context = shape["context"]
    starts = [random.below(len(text) - context) for _ in range(shape["batch"])]
    rows = torch.stack([text[start:start + context + 1] for start in starts]).long()
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def read_text(path):
    with open(path, "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
