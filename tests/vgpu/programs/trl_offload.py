"""TRL's activation offloading, as it is installed, around two steps of a GPT-2: are the gradients
the CPU's?

    trl_offload.py [--without N]     without the Nth line of its source that waits
"""

import contextlib
import importlib.util
import pathlib
import sys

import torch
import transformers
from trl.models import activation_offloading as trl

transformers.logging.set_verbosity_error()
CONFIG = transformers.GPT2Config(n_layer=3, n_head=4, n_embd=64, vocab_size=256, n_positions=64,
                                 attn_implementation="eager")


def without(number):
    """TRL's module with that line left out."""
    lines = pathlib.Path(trl.__file__).read_text(encoding="utf-8").splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if ".wait_" in line][number]
    lines[at] = lines[at][:-len(lines[at].lstrip())] + "pass\n"
    module = importlib.util.module_from_spec(trl.__spec__)
    module.__file__ = trl.__file__
    exec(compile("".join(lines), trl.__file__, "exec"), module.__dict__)
    return module


def gradients(device, module=None):
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(CONFIG).eval().to(device)
    tokens = torch.randint(0, 256, (4, 64), generator=torch.Generator().manual_seed(1)).to(device)
    offload = contextlib.nullcontext()
    if module:
        offload = module.get_act_offloading_ctx_manager(
            model, use_pin_memory=True, use_streams=True, min_offload_size=64)
    for _ in range(2):
        model.zero_grad()
        with offload:
            loss = model(tokens, labels=tokens).loss
        loss.backward()
    return [parameter.grad.cpu() for parameter in model.parameters()]


used = without(int(sys.argv[2])) if "--without" in sys.argv else trl
print(all(map(torch.equal, gradients("cpu"), gradients("cuda", used))))
