"""Captured programs against a table of whole trainings' memory: what `ferry plan` says of each.

    trainings.py FERRY [ROW…] [--keep FOLDER]     rows by their ids; all where none is named

The table (FERRY_MEMORY_TABLE) was measured by PyTorch 2.11's own host code over a CUDA runtime
whose launches did nothing and whose addresses went up; without it nothing is compared. Each row's
model is captured as its script has it and planned with the row's optimizer, micro-batches and card.
Prints a line for each row: for each of four steps the peak of what is allocated, of what was asked
for and of what is reserved, ours over the table's, and where the least memory that is enough stands
in the table's bracket. Fails where a figure is further off than is allowed, of all rows or of one
that is known.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, os.environ.get("FERRY_PYTHON_PACKAGE") or str(ROOT / "python"))
sys.path.insert(1, str(ROOT / "python"))

import torch
import transformers

from torch_ferry import capture

TABLE = pathlib.Path(os.environ.get(
    "FERRY_MEMORY_TABLE", ROOT.parent / "shared/data/training-memory/shared.csv"))
CARDS = {"90": "h200", "80": "a100"}
OPTIMIZERS = {"none": ("none", "foreach"), "adamw": ("adamw", "foreach"),
              "fused": ("adamw", "fused"), "sgd": ("momentum", "foreach")}
KINDS = {"gpt2": "GPT2LMHeadModel", "llama3-8b": "LlamaForCausalLM",
         "vit-b16": "ViTForImageClassification", "t5-small": "T5ForConditionalGeneration"}
STEPS = 4
LEAST_OF = 3  # the steps that the table's least memory is enough for
ALLOWED = 0.01
ALLOWED_REQUESTED = 0.001
# The least memory: the table's runtime put some segments of T5 elsewhere. PyTorch's own host code
# over addresses that go up reserves what ours does to the byte, fails at the table's least memory,
# and runs at ours.
ALLOWED_LEAST = {"S30": 0.05}


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


class Step(torch.nn.Module):
    """Forward, and its loss, as the row's script runs them: autocast is left before backward."""

    def __init__(self, model, autocast):
        super().__init__()
        self.model, self.autocast = model, autocast

    def forward(self, **inputs):
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            return self.model(**inputs).loss


def make_inputs(row, dtype):
    batch, seq = int(row["batch"]), int(row["seq"])
    if row["model"] == "vit-b16":
        return {"pixel_values": torch.zeros(batch, 3, 224, 224, device="cuda", dtype=dtype),
                "labels": torch.zeros(batch, dtype=torch.long, device="cuda")}
    ids = torch.zeros(batch, seq, dtype=torch.long, device="cuda")
    if row["model"] == "t5-small":
        return {"input_ids": ids,
                "labels": torch.zeros(batch, 128, dtype=torch.long, device="cuda")}
    return {"input_ids": ids, "labels": ids}


def captured(row):
    dtype = torch.bfloat16 if row["prec"] == "bf16" else torch.float32
    with capture.cuda():
        with capture.fake_mode():
            model = getattr(transformers, KINDS[row["model"]])(config_of(row))
            model = model.to(dtype).cuda().train()
            if row["ckpt"] != "off":
                model.gradient_checkpointing_enable(
                    gradient_checkpointing_kwargs={"use_reentrant": row["ckpt"] == "reentrant"})
            inputs = make_inputs(row, dtype)
        return capture.capture(Step(model, row["prec"] == "autocast"), inputs, lambda loss: loss,
                               name=row["id"])


def policy_of(row):
    if row["offload"] == "trl":  # the table's script told it of no parameters
        policy = "offload-all" if row["ckpt"] == "off" else "checkpoint-offload-all"
        return [policy, "--offload-all-as", "trl-untold"]
    return ["keep" if row["ckpt"] == "off" else "checkpoint"]


def planned(ferry, row, program, steps, *budget):
    optimizer, implementation = OPTIMIZERS[row["opt"]]
    done = subprocess.run(
        [ferry, "plan", program, "--card", CARDS[row["sm"]], "--policy", *policy_of(row),
         *budget, "--optimizer", optimizer, "--optimizer-implementation", implementation,
         "--microbatches", row["accum"], "--steps", str(steps), "--unchecked", "--no-modules",
         "--segments-go-up", "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)["rows"][0]


def compared(ferry, row, folder):
    """(relative, name) of each figure; the last is the least memory's, against its bracket."""
    program = pathlib.Path(folder, f"{row['id']}.jsonl")
    captured(row).write(program)
    figures = []
    least = None
    for step in range(1, STEPS + 1):
        plan = planned(ferry, row, program, step)
        least = plan["least_bytes"] if step == LEAST_OF else least
        for key, name in (("device_peak_bytes", "peak"), ("device_reserved_bytes", "reserved")):
            figures.append((plan[key] / int(row[f"{name}_{step}"]) - 1, f"{name}_{step}"))
        if row[f"peak_{step}"] == row[f"peak_fwdbwd_{step}"]:  # else the table has none of it
            asked = int(row[f"req_peak_fwdbwd_{step}"])
            figures.append((plan["device_requested_bytes"] / asked - 1, f"requested_{step}"))
    if row["mincap_default"] and row["mincap_default_fails_at"]:
        figures.append((least_outside(ferry, row, program, least), "least"))
    return figures


def least_outside(ferry, row, program, least):
    """How far it is from the table's bracket, or 0 where it runs and fails where the table's did:
    whether a training runs is not monotone in the capacity, so a search may end elsewhere."""
    low, high = int(row["mincap_default_fails_at"]), int(row["mincap_default"])
    fits = [planned(ferry, row, program, LEAST_OF, "--budget", str(at))["fits"]
            for at in (low, high)]
    if fits == [False, True]:
        return 0.0
    return least / high - 1 if least > high else min(least / low - 1, 0)


def allowed(row, name):
    if name == "least":
        return ALLOWED_LEAST.get(row["id"], ALLOWED)
    return ALLOWED_REQUESTED if name.startswith("requested") else ALLOWED


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ferry")
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--keep", help="a folder for the programs")
    options = parser.parse_args()
    if not TABLE.exists():
        print(f"skipped: there is no {TABLE}")
        return 0
    with TABLE.open() as lines:
        rows = [row for row in csv.DictReader(lines)
                if not options.rows or row["id"] in options.rows]
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for row in rows:
            figures = compared(options.ferry, row, options.keep or temporary)
            beyond = [name for by, name in figures if abs(by) > allowed(row, name)]
            failed += bool(beyond)
            what = " ".join(row[name] for name in ("id", "model", "prec", "opt", "ckpt"))
            print(f"{'FAILED ' if beyond else ''}{what} accum {row['accum']} drop {row['drop']}: "
                  + ", ".join(f"{name} {100 * by:+.3f} %" for by, name in figures), flush=True)
    print(f"{len(rows)} rows: {len(rows) - failed} as close as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
