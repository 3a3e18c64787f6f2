"""Some steps of a training, as a row of a table of memory describes it, and what each takes.

    whole_training.py ROW STEPS        ROW: JSON, {"model": "gpt2", "batch": 8, "seq": 1024, …}

Prints for each step JSON of bytes, by the table's names: allocated after forward, the peaks until
then, until backward's end and in the update, and what is reserved.
"""

import contextlib
import json
import sys

import torch
import transformers

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "autocast": torch.float32}


def config_of(row):
    drop = float(row["drop"])
    if row["model"] == "gpt2":
        return transformers.GPT2Config(resid_pdrop=drop, embd_pdrop=drop, attn_pdrop=drop,
                                       use_cache=False)
    if row["model"] == "llama3-8b":
        return transformers.LlamaConfig(
            vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
            num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=8192,
            use_cache=False)
    if row["model"] == "vit-b16":
        return transformers.ViTConfig(num_labels=1000)
    return transformers.T5Config(d_model=512, d_ff=2048, d_kv=64, num_layers=6, num_heads=8,
                                 vocab_size=32128, dropout_rate=drop, use_cache=False,
                                 decoder_start_token_id=0, pad_token_id=0)


KINDS = {"gpt2": "GPT2LMHeadModel", "llama3-8b": "LlamaForCausalLM",
         "vit-b16": "ViTForImageClassification", "t5-small": "T5ForConditionalGeneration"}


def give_memory(module, given):
    """In the order of module.to("cuda"), but a tied parameter once: `given` is by the old one."""
    for child in module.children():
        give_memory(child, given)
    for name, old in module._parameters.items():
        if old is not None and old not in given:
            given[old] = torch.nn.Parameter(torch.empty_like(old, device="cuda"), old.requires_grad)
        module._parameters[name] = given.get(old)
    for name, old in module._buffers.items():
        module._buffers[name] = old if old is None else torch.empty_like(old, device="cuda")


def make_model(row):
    torch.set_default_dtype(DTYPES[row["prec"]])
    with torch.device("meta"):
        model = getattr(transformers, KINDS[row["model"]])(config_of(row))
    torch.set_default_dtype(torch.float32)
    model.tie_weights()
    give_memory(model, {})
    model.train()
    if row["ckpt"] != "off":
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": row["ckpt"] == "reentrant"})
    return model


def make_inputs(row):
    batch, seq = int(row["batch"]), int(row["seq"])
    if row["model"] == "vit-b16":
        pixels = torch.zeros(batch, 3, 224, 224, device="cuda",
                             dtype=torch.bfloat16 if row["prec"] == "bf16" else torch.float32)
        return {"pixel_values": pixels,
                "labels": torch.zeros(batch, dtype=torch.long, device="cuda")}
    ids = torch.zeros(batch, seq, dtype=torch.long, device="cuda")
    if row["model"] == "t5-small":
        return {"input_ids": ids,
                "labels": torch.zeros(batch, 128, dtype=torch.long, device="cuda")}
    return {"input_ids": ids, "labels": ids}


def make_optimizer(row, parameters):
    if row["opt"] == "none":
        return None
    if row["opt"] == "sgd":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=True)
    fused = {"fused": True} if row["opt"] == "fused" else {}
    return torch.optim.AdamW(parameters, **fused)


def offloading(row):
    if row["offload"] == "off":
        return contextlib.nullcontext()
    from trl.models.activation_offloading import OffloadActivations
    return OffloadActivations()


def step(row, model, inputs, optimizer, around):
    cuda, seen = torch.cuda, {}
    cuda.reset_peak_memory_stats()
    for _ in range(int(row["accum"])):
        with around:
            with torch.autocast("cuda", torch.bfloat16, enabled=row["prec"] == "autocast"):
                loss = model(**inputs).loss
        seen["fwd_end"], seen["peak_fwd"] = cuda.memory_allocated(), cuda.max_memory_allocated()
        loss.backward()
        del loss
    seen["bwd_end"] = cuda.memory_allocated()
    seen["peak_fwdbwd"] = cuda.max_memory_allocated()
    cuda.reset_peak_memory_stats()
    if optimizer:
        optimizer.step()
    seen["peak_opt"] = cuda.max_memory_allocated()
    seen["reserved"] = cuda.memory_stats()["reserved_bytes.all.peak"]
    model.zero_grad(set_to_none=True)
    seen["end"] = cuda.memory_allocated()
    return seen


def main():
    torch.backends.cuda.enable_cudnn_sdp(False)  # the table has flash attention, or efficient
    row, steps = json.loads(sys.argv[1]), int(sys.argv[2])
    model = make_model(row)
    inputs = make_inputs(row)
    optimizer = make_optimizer(row, model.parameters())
    around = offloading(row)
    for _ in range(steps):
        seen = step(row, model, inputs, optimizer, around)
        print(json.dumps(seen))


main()
