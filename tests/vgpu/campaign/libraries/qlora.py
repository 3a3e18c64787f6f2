"""QLoRA: adapters of peft around a Llama whose weights bitsandbytes keeps in four bits, on the
device and, with torch_ferry.stream_weights, on the host."""

import torch
import torch_ferry as ferry
import transformers
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from tiny import VOCABULARY, told, tokens

transformers.logging.set_verbosity_error()


def quantized():
    """A Llama that computes in single precision, with its linear layers in NF4."""
    import bitsandbytes
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=VOCABULARY, attn_implementation="eager"))
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, child in list(part.named_children()):
                if not isinstance(child, torch.nn.Linear):
                    continue
                four = bitsandbytes.nn.Linear4bit(
                    child.in_features, child.out_features, bias=False, quant_type="nf4",
                    compute_dtype=torch.float32, compress_statistics=True)
                four.load_state_dict(child.state_dict())
                setattr(part, name, four)
    return model


def trained(device, streams=False):
    model = prepare_model_for_kbit_training(quantized() if streams else quantized().to(device))
    if not streams:
        model.gradient_checkpointing_disable()
    torch.manual_seed(1)
    model = get_peft_model(model, LoraConfig(r=4, lora_dropout=0.0, init_lora_weights=False,
                                             target_modules=["q_proj", "v_proj", "down_proj"]))
    if streams:
        ferry.stream_weights(model, device=device, min_bytes=1024)
    trainable = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=0.1)
    batch = torch.stack([tokens(i) for i in range(2)]).to(device)
    for _ in range(2):
        optimizer.zero_grad()
        model(batch, labels=batch).loss.backward()
        optimizer.step()
    return [each.detach().cpu() for each in trainable]


told([*trained("cuda"), *trained("cuda", streams=True)], 2 * trained("cpu"))
