"""The operators of a profile that PyTorch exports are those of a captured program.

    profile_test.py FERRY PYTHON PACKAGE     PYTHON has PyTorch and transformers

There is no profile of kernels without a GPU. The calls are real ones, of a Llama on the virtual
GPU, as PyTorch's profiler exports them; a kernel is put into each innermost one.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON, PACKAGE = sys.argv[1:4]

SCRIPT = """
import torch, transformers

class Step(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, labels):
        with torch.autocast("cuda", torch.bfloat16):
            return self.model(input_ids=ids, labels=labels).loss

def step():
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=160, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, use_cache=False)
    ids = torch.zeros(2, 64, dtype=torch.long, device="cuda")
    model = transformers.LlamaForCausalLM(config).cuda().train()
    return Step(model), {"ids": ids, "labels": ids}, lambda loss: loss

if __name__ == "__main__":
    module, inputs, loss = step()
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu], record_shapes=True) as profile:
        loss(module(**inputs)).backward()
    profile.export_chrome_trace("step.json")
"""

KERNEL_US = 12.5


def call(folder, *words):
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=500, cwd=folder, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([PACKAGE, str(folder)])})
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def innermost(events):
    """PyTorch's operators around no other of them."""
    calls = [event for event in events
             if event.get("cat") == "cpu_op" and event["name"].startswith("aten::")]
    calls.sort(key=lambda event: (event["tid"], event["ts"], -event["dur"]))
    for event, following in zip(calls, calls[1:] + [None]):
        inside = (following is not None and following["tid"] == event["tid"]
                  and following["ts"] + following["dur"] <= event["ts"] + event["dur"])
        if not inside:
            yield event


def with_kernels(profile):
    kernels = [{"ph": "X", "cat": "kernel", "name": "kernel", "pid": 0, "tid": 7, "ts": 0,
                "dur": KERNEL_US, "args": {"External id": event["args"]["External id"],
                                           "device": 0, "stream": 7}}
               for event in innermost(profile["traceEvents"])]
    return profile | {"traceEvents": profile["traceEvents"] + kernels}


class ProfileTest(unittest.TestCase):
    def test_nearly_every_operator_of_a_program_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "llama_step.py").write_text(SCRIPT)
            call(folder, FERRY, "run", "--hide-gpu", "--python", PYTHON, "llama_step.py")
            profile = json.loads((folder / "step.json").read_text())
            (folder / "step.json").write_text(json.dumps(with_kernels(profile)))
            call(folder, PYTHON, "-m", "torch_ferry.capture", "llama_step:step", "-o", "step.jsonl")
            plan = json.loads(call(folder, FERRY, "simulate", "step.jsonl", "--card", "h100",
                                   "--policy", "keep", "--times", "step.json", "--json"))
        times = plan["times"]
        print(f"{times['measured']} of {times['ops']} operators are in the profile")
        self.assertGreater(times["measured"], 0.9 * times["ops"])
        self.assertLessEqual(times["measured"], times["ops"])
        self.assertEqual(times["scaled"], 0, "a profile says nothing of other sizes")
        self.assertGreaterEqual(plan["rows"][0]["compute_ns"],
                                times["measured"] * KERNEL_US * 1000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
