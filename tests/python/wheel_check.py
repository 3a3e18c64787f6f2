"""What a user does with a wheel, in an environment of its own: `./dev wheel` runs it.

    wheel_check.py WHEEL TORCH_SITE_PACKAGES

The environment has the wheel installed; torch and Hugging Face's transformers it borrows, for they
are 4.7 GB. Nothing of this tree is on its path.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

TIMES = """
import time, torch
begin = time.perf_counter()
import torch_ferry
print(f"import torch_ferry: {1e3 * (time.perf_counter() - begin):.1f} ms over torch's")
assert "site-packages" in torch_ferry.__file__, torch_ferry.__file__
"""

# It is of one minor version of torch, and says so before any of it is loaded.
OTHER = """
import importlib.metadata, sys, torch
minor = ".".join(torch.__version__.split(".")[:2])
required = importlib.metadata.requires("torch-ferry")
assert [each for each in required if "extra" not in each] == [f"torch=={minor}.*"], required
torch.__version__ = "2.99.0"
try:
    import torch_ferry
except ImportError as error:
    assert "was built for torch" in str(error) and "torch_ferry._C" not in sys.modules, error
else:
    raise SystemExit("torch_ferry was imported beside another torch")
"""

# What the package is to do with torch alone: nothing else can be imported.
ALONE = """
import sys
for name in ("numpy", "transformers", "trl", "accelerate", "psutil"):
    sys.modules[name] = None
import torch, torch_ferry as ferry

torch.manual_seed(0)
layers = [torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Dropout(0.1)] * 4
model, x = torch.nn.Sequential(*layers), torch.randn(64, 256)

def loss_fn(output):
    return output.square().mean()

def gradients(guard):
    torch.manual_seed(1)
    with guard:
        loss = loss_fn(model(x))
    model.zero_grad()
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]

kept = gradients(ferry.no_offload())
plan = ferry.plan(model, x, loss_fn, card="a100", policies=["offload"])
for offload in (ferry.offload(window=0), ferry.run(plan)):
    assert all(map(torch.equal, kept, gradients(offload))), "other gradients"
    assert offload.statistics().offloaded_bytes > 0 and offload.empty(), offload
print(offload.statistics())
"""

# The README's lines, on a model of Hugging Face's.
README = """
import time, torch, transformers
torch.manual_seed(0)

class GPT2(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=4, n_head=4, n_embd=256, vocab_size=4096, n_positions=128))

    def forward(self, tokens):
        return self.body(tokens).logits

model, x = GPT2(), torch.randint(0, 4096, (8, 128))

def loss_fn(logits):
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), x[:, 1:].flatten())

def gradients(lines):
    begin = time.perf_counter()
    torch.manual_seed(1)
    exec(lines, globals())
    taken = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    return taken, time.perf_counter() - begin

plain = "loss = loss_fn(model(x)); loss.backward()"
gradients(plain)  # warm
imports, *parts = {lines!r}.split("\\n\\n")
exec(imports, globals())
kept, _ = gradients(plain)
for part in [plain, *parts]:
    got, took = gradients(part)
    assert all(map(torch.equal, kept, got)), "other gradients"
    print(f"{{took:.2f}} s, the same bits: {{part.splitlines()[0]}}")
print(plan)
"""


def main(wheel, torch_site):
    with zipfile.ZipFile(wheel) as names:
        # auditwheel puts copies there of the libraries that are neither the system's nor torch's.
        brought = [name for name in names.namelist() if ".libs/" in name and not name.endswith("/")]
    if brought:
        sys.exit(f"{wheel}: expected to need the system's libraries and torch alone: {brought}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(folder, sys.executable, "-m", "venv", "env")
        site = next((folder / "env/lib").glob("python3*/site-packages"))
        (site / "torch.pth").write_text(f"{torch_site}\n")
        begin = time.perf_counter()
        run(folder, "env/bin/pip", "install", "-q", "--no-deps", "--no-index",
            str(pathlib.Path(wheel).resolve()))
        print(f"installed in {time.perf_counter() - begin:.1f} s")
        print(run(folder, "env/bin/python", "-c", TIMES), end="")
        run(folder, "env/bin/python", "-c", OTHER)
        print(run(folder, "env/bin/python", "-c", ALONE), end="")
        # The command, with the programs and the cards that it ships with.
        begin = time.perf_counter()
        version = run(folder, "env/bin/ferry", "--version").strip()
        print(f"{version} (in {time.perf_counter() - begin:.2f} s)")
        print(run(folder, "env/bin/ferry", "plan", "gpt2", "--hardware", "h100",
                  "--policy", "keep,budget"), end="")
        refused = subprocess.run([folder / "env/bin/ferry", "train", "gpt"], capture_output=True,
                                 text=True, check=False)
        if "is not in the Python package" not in refused.stderr:
            sys.exit(f"ferry train: expected to say where it is; got {refused}")
        run(folder, "env/bin/python", "-m", "torch_ferry.capture", "gpt2", "-o", "gpt2.jsonl")
        print(run(folder, "env/bin/python", "-m", "torch_ferry.summary", "gpt2.jsonl"
                  ).splitlines()[0])
        print(run(folder, "env/bin/python", "-c", README.format(lines=lines_of_the_readme())))


def lines_of_the_readme():
    """From the import to the end of its paragraphs, which are indented."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^    import torch_ferry as ferry\n(\n|    .*\n)+", text, re.MULTILINE)
    return textwrap.dedent(found[0]).strip()


def run(folder, *command):
    """Its output; of what fails the whole of it is shown."""
    plain = {key: value for key, value in os.environ.items()
             if key not in ("PYTHONPATH", "FERRY_SCENARIOS", "VIRTUAL_ENV")}
    ran = subprocess.run([str(folder / command[0]), *command[1:]], cwd=folder, env=plain,
                         capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(command)[:200]}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
