"""TRL's class beside ours: the same bits, the same heads, and one import line between them.

TRL's needs an accelerator: here it is told that the CPU is one, which moves (copies) as one would.
"""

import copy
import inspect
import logging
import types
import unittest
from unittest import mock

from native.support import torch

try:
    from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM)
    from trl.models import activation_offloading as theirs
except ImportError as error:
    raise unittest.SkipTest(f"no trl: {error}")

from torch import nn
from torch_ferry import trl as ours

CPU = mock.patch.object(torch.accelerator, "current_accelerator",
                        lambda *_, **__: torch.device("cpu"))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=512,
                                      n_positions=64, attn_implementation="eager"))


def llama():
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=512, attn_implementation="eager"))


def run(module, make, **options):
    """Three steps of a user of TRL's, whose context is of this module; without one, no context."""
    torch.manual_seed(0)
    model = make().train()
    context = module and module.get_act_offloading_ctx_manager(model, **options)
    tokens = torch.randint(0, 512, (4, 64))
    for _ in range(3):
        if context:
            with context:
                model(tokens, labels=tokens).loss.backward()
        else:
            model(tokens, labels=tokens).loss.backward()
    return context, [parameter.grad for parameter in model.parameters()]


class Beside(unittest.TestCase):
    def test_gradients_are_the_same_bits(self):
        for make in (gpt2, llama):
            with self.subTest(model=make.__name__), CPU:
                _, without = run(None, make)
                for streams in (False, True):
                    context, mine = run(ours, make, use_streams=streams, min_offload_size=4096)
                    self.assertTrue(all(map(torch.equal, without, mine)))
                    self.assertGreater(context.statistics().offloaded_count, 0)
                    self.assertTrue(context.empty())
                context, field = run(theirs, make, use_pin_memory=False, use_streams=False,
                                     min_offload_size=4096)
                self.assertTrue(all(map(torch.equal, without, field)))

    def test_what_the_head_saves_is_left_alone(self):
        # The input of the head and its weight. The loss after it is the model's, and is not.
        packs = []
        for hooked in (True, False):
            torch.manual_seed(0)
            model, tokens = gpt2(), torch.randint(0, 512, (4, 64))
            context = (ours.get_act_offloading_ctx_manager(model) if hooked else
                       ours.OffloadActivations())
            with context:
                loss = model(tokens, labels=tokens).loss
            loss.backward()
            packs.append(context.statistics().packs)
        self.assertEqual(2, packs[1] - packs[0])

    def test_a_head_that_fails_leaves_no_guard_open(self):
        model = nn.Module()
        model.lm_head = nn.Linear(4, 4)
        context = ours.get_act_offloading_ctx_manager(model)
        for _ in range(2):
            with context, self.assertRaises(RuntimeError):
                model.lm_head(torch.randn(3))
        with context:
            torch.randn(4096, requires_grad=True).exp()
        self.assertEqual(1, context.statistics().packs)


class Arguments(unittest.TestCase):
    def test_the_constructor_is_theirs(self):
        for name in ("OffloadActivations", "get_act_offloading_ctx_manager"):
            self.assertEqual(parameters(getattr(theirs, name)), parameters(getattr(ours, name)))
        with self.assertRaisesRegex(ValueError, "at least 1 but is 0"):
            ours.OffloadActivations(max_fwd_stash_size=0)

    def test_small_tensors_and_parameters_stay(self):
        layer, x = nn.Linear(64, 64), torch.randn(8, 64, requires_grad=True)
        for least, moved in ((8 * 64 * 4, 1), (8 * 64 * 4 + 1, 0)):
            context = ours.OffloadActivations(min_offload_size=least)
            context.update_model_params(layer)
            with context:
                loss = layer(x * 2).sum()
            loss.backward()
            self.assertEqual(moved, context.statistics().offloaded_count)


def parameters(function):
    return [(name, parameter.default)
            for name, parameter in inspect.signature(function).parameters.items()]


def tree(**parts):
    module = nn.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def peft(model):
    model.peft_config = {}
    model.base_model = tree(lm_head=nn.Identity())
    return model


class Heads(unittest.TestCase):
    """Found as TRL finds them: the modules that have hooks afterwards are the same."""

    MODELS = {
        "output": tree(output=nn.Identity(), lm_head=nn.Identity()),
        "output.linear": tree(output=types.SimpleNamespace(linear=nn.Identity())),
        "an output that is no module decides": tree(output="text", lm_head=nn.Identity()),
        "lm_head": tree(lm_head=nn.Identity(), decoder=tree(output=nn.Identity())),
        "decoder.output": tree(decoder=tree(output=nn.Identity(), lm_head=nn.Identity())),
        "decoder.lm_head": tree(decoder=tree(lm_head=nn.Identity())),
        "a decoder without one decides": tree(decoder=tree(), head=nn.Identity()),
        "final_layer_norm": tree(final_layer_norm=nn.Identity(), ln_f=nn.Identity()),
        "ln_f": tree(ln_f=nn.Identity(), head=nn.Identity()),
        "head": tree(head=nn.Identity()),
        "a head that is no module": tree(head=3),
        "none": tree(body=nn.Identity()),
        "wrapped": tree(module=tree(lm_head=nn.Identity())),
        "PEFT": tree(module=peft(tree(output=nn.Identity()))),
        "Liger": tree(lm_head=nn.Identity(), my_liger=tree(part=nn.Identity())),
    }

    def hooked(self, module, model):
        model = copy.deepcopy(model)
        with CPU, mock.patch.object(theirs, "logger", logging.getLogger("theirs")), \
                self.assertLogs() as logs:
            logging.info("a line in any case")
            module.get_act_offloading_ctx_manager(model, use_streams=False)
        names = [name for name, part in model.named_modules(remove_duplicate=False)
                 if part._forward_pre_hooks and part._forward_hooks]
        if isinstance(getattr(model, "output", None), types.SimpleNamespace):
            names.append(f"output.linear: {len(model.output.linear._forward_hooks)}")
        return names, len(logs.output)

    def test_the_same_modules_and_the_same_warning(self):
        for name, model in self.MODELS.items():
            with self.subTest(name):
                self.assertEqual(self.hooked(theirs, model), self.hooked(ours, model))


if __name__ == "__main__":
    unittest.main()
