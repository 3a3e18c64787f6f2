"""A model that is captured with a few of its layers has the program of the whole model."""

import unittest

from native.support import torch
from torch_ferry import lora
from torch_ferry.capture import capture, fake_mode
from torch_ferry.few_layers import Cut
from torch_ferry.program import Program
from torch_ferry.repeat import NotAlike, repeated

try:
    import transformers
except ImportError:
    transformers = None

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 100}
KEYS = {"num_key_value_heads": 1, **SMALL}


def causal(config, adapted=False, checkpointed=False):
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    if adapted:
        lora.adapt(model, ("q_proj", "down_proj"))
    if checkpointed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def llama(layers, **options):
    return causal(transformers.LlamaConfig(num_hidden_layers=layers, **KEYS), **options)


def alternating():
    return causal(transformers.Gemma2Config(num_hidden_layers=11, head_dim=16, sliding_window=8,
                                            **KEYS))


def experts():
    return causal(transformers.MixtralConfig(num_hidden_layers=6, num_local_experts=2, **KEYS))


def two_lists():
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        d_model=32, d_kv=16, d_ff=64, num_layers=6, num_decoder_layers=7, num_heads=2,
        vocab_size=100, decoder_start_token_id=0, use_cache=False))


def step(make):
    """Returns the model, and its program without what `about` says of places in the source."""
    model = make().train()
    inputs = {name: torch.zeros(1, 16, dtype=torch.int64) for name in ("input_ids", "labels")}
    return model, inputs


def programs(make):
    """Returns (lists of layers that were cut, the whole program, the one of a few layers)."""
    with fake_mode():
        model, inputs = step(make)
    whole = captured(model, inputs)
    with fake_mode():
        model, inputs = step(make)
        cut = Cut(model)
    return cut.lists, whole, cut.program(captured(model, inputs))


def captured(model, inputs):
    return capture(model, inputs, lambda output: output.loss, assume=("balanced",))


def lines(program):
    """Returns the lines without the header, whose texts name the calls of each layer."""
    return [*program.lines()][1:]


@unittest.skipIf(transformers is None, "needs transformers")
class FewLayers(unittest.TestCase):
    def check(self, make, *lists):
        cut, whole, few = programs(make)
        self.assertEqual(cut, [*lists])
        self.assertEqual(lines(few), lines(whole))

    def test_equal_layers(self):
        self.check(lambda: llama(12), ("model.layers", 2, 1, 8))

    def test_one_layer_is_put_back(self):
        self.check(lambda: llama(5), ("model.layers", 2, 1, 1))

    def test_few_layers_stay(self):
        self.check(lambda: llama(4))

    def test_adapters(self):
        self.check(lambda: llama(7, adapted=True), ("model.layers", 2, 1, 3))

    def test_checkpoints(self):
        self.check(lambda: llama(7, checkpointed=True), ("model.layers", 2, 1, 3))

    def test_layers_that_alternate(self):
        self.check(alternating, ("model.layers", 4, 2, 1))

    def test_experts(self):
        self.check(experts, ("model.layers", 2, 1, 2))

    def test_encoder_and_decoder(self):
        self.check(two_lists, ("encoder.block", 3, 1, 1), ("decoder.block", 3, 1, 2))

    def test_a_layer_of_another_kind_ends_the_stretch(self):
        def make():
            model = llama(12)
            model.model.layers[9].mlp.gate_proj.bias = torch.nn.Parameter(torch.zeros(64))
            return model
        self.check(make, ("model.layers", 2, 1, 5))

    def test_a_setting_of_a_layer_counts_and_its_number_does_not(self):
        with fake_mode():
            model = llama(12)
            for number, layer in enumerate(model.model.layers):
                layer.self_attn.scaling = 1.0 + number
            self.assertEqual(Cut(model).lists, [])

    def test_the_configuration_says_which_layers_are_alike(self):
        with fake_mode():
            for said, lists in (["a"] * 12, [("model.layers", 2, 1, 8)]), \
                    (["a", "b"] * 6, [("model.layers", 4, 2, 2)]), \
                    (["a"] * 10 + ["b"] * 2, []), \
                    (["a"] * 5 + ["b"] + ["a"] * 6, [("model.layers", 8, 1, 2)]):
                model = llama(12)
                model.config.of_each = said
                self.assertEqual(Cut(model).lists, lists, said)

    def test_layers_that_differ_in_the_program(self):
        with fake_mode():
            model, inputs = step(lambda: llama(12))
            layer = model.model.layers[2].mlp
            forward = layer.forward
            layer.forward = lambda x: forward(x).relu()
            cut = Cut(model)
        with self.assertRaises(NotAlike):
            cut.program(captured(model, inputs))

    def test_no_such_layer(self):
        with self.assertRaisesRegex(NotAlike, "calls layers.2"):
            repeated(Program("empty"), "layers", 2, 1, 1)


if __name__ == "__main__":
    unittest.main()
