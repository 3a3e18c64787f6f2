"""Tries a wheel as a user does, in a fresh environment for each pair of Python and torch.

    fresh.py WHEELS --pair PYTHON=TORCH … [--json OUT] [--folder DIR] [--pip-option WORD …]

WHEELS is the folder with the wheels of a release, PYTHON the path of an interpreter, and TORCH a
version from pip's index, or `none`. Each environment is made, used and removed before the next one;
with torch it takes 4.7 GB. Ferry's wheel is installed without an index, and no compiler is on PATH.
Prints a row for each pair. The exit code is 1 if one failed.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Packages installed with torch: for the captured model, and for `pytest --ferry`.
BESIDE = ("numpy", "pytest", "transformers")


class Failed(Exception):
    """A command did not do what it should; the message has its output."""


class Environment:
    def __init__(self, folder, python):
        self.folder = folder
        self.bin = folder / "env/bin"
        subprocess.run([python, "-m", "venv", folder / "env"], check=True)

    def run(self, program, *arguments, expected=(0,), text=""):
        """Returns the output of a program, both streams together. Raises Failed, with the output,
        if the exit code is not in `expected` or `text` is not in the output."""
        path = {"PATH": str(self.bin), "HOME": str(self.folder), "LANG": "C.UTF-8"}
        ran = subprocess.run([self.bin / program, *arguments], cwd=self.folder, env=path, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if ran.returncode not in expected or text not in ran.stdout:
            raise Failed(f"{program} {' '.join(map(str, arguments))}: exit code {ran.returncode}, "
                         f"expected {expected} and {text!r}\n{ran.stdout[-4000:]}")
        return ran.stdout

    def pip(self, *arguments):
        subprocess.run([self.bin / "pip", "install", "-q", "--no-cache-dir",
                        "--disable-pip-version-check", *arguments], check=True)


def without_torch(environment):
    """Checks that the command and the reader of programs work, and that errors ask for torch."""
    environment.run("python", "-c", "import torch_ferry.program")
    said = environment.run("python", "-c", "import torch_ferry; torch_ferry.offload", expected=(1,))
    if "needs torch" not in said:
        raise Failed(f"import torch_ferry; torch_ferry.offload: {said}")
    environment.run("ferry", "run", "-c", "pass", expected=(7,), text="PyTorch")
    return {}


def with_torch(environment, device):
    result = {}
    took = environment.run("python", "steps/imports.py").split()
    result["import ms"] = float(took[-1])
    environment.run("python", "steps/bits.py", device, text="the same bits")
    environment.run("python", "-m", "torch_ferry.capture", "steps.hugging_face:step",
                    "-o", "captured.jsonl")
    environment.run("ferry", "plan", "captured.jsonl", "--card", "rtx4090", text="offload")
    environment.run("ferry", "calibrate", "--small", "--device", device, text="matmul in f32")
    on_cpu = environment.run("python", "steps/train.py", "cpu")
    on_gpu = environment.run("ferry", "run", "--hide-gpu", "steps/train.py", "cuda")
    bits = on_cpu.split("bits ")[1].split()[0]
    if f"bits {bits}" not in on_gpu:
        raise Failed(f"ferry run: expected the same bits as on the CPU, {bits}\n{on_gpu}")
    environment.run("pytest", "-q", "-p", "no:cacheprovider", "--ferry", "--ferry-run=--hide-gpu",
                    "steps/test_race.py", expected=(1,), text="1 failed, 1 passed")
    return result


def check(wheels, python, torch, device, folder, pip_options):
    """Returns what was measured for one pair. Raises Failed, or CalledProcessError for pip."""
    environment = Environment(folder, python)
    shutil.copytree(HERE / "steps", folder / "steps")
    if torch != "none":
        environment.pip(*pip_options, f"torch=={torch}", *BESIDE)
    before = set((folder / "env").rglob("*"))
    begin = time.monotonic()
    environment.pip("--no-index", "--no-deps", "--find-links", wheels, "torch-ferry")
    result = {"install s": time.monotonic() - begin}
    begin = time.monotonic()
    environment.run("ferry", "plan", "gpt2", "--card", "rtx4090", text="offload")
    result["plan s"] = time.monotonic() - begin
    result |= without_torch(environment) if torch == "none" else with_torch(environment, device)
    environment.run("pip", "uninstall", "-q", "-y", "torch-ferry")
    # pytest caches the plugins that it rewrites, and pip does not know these files.
    left = [path for path in (folder / "env").rglob("*")
            if path.is_file() and path not in before and "-pytest-" not in path.name
            and "ferry" in str(path.relative_to(folder))]
    if left:
        raise Failed(f"pip uninstall left these files: {left[:5]}")
    return result


def pair_of(text):
    """Reads PYTHON=TORCH: returns (interpreter, version of torch or `none`)."""
    python, equals, torch = text.partition("=")
    if not (equals and torch) or shutil.which(python) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected PYTHON=TORCH: an interpreter that can be run, and a version of "
            "torch or none, such as python3.12=2.15.0")
    return python, torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", type=pathlib.Path)
    parser.add_argument("--pair", metavar="PYTHON=TORCH", type=pair_of, action="append",
                        required=True)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--pip-option", metavar="WORD", action="append", default=[])
    options = parser.parse_args()
    rows = []
    if not any(options.wheels.glob("torch_ferry-*.whl")):
        parser.error(f"{options.wheels}: there are no wheels in this folder; ./dev release makes "
                     "them")
    for python, torch in options.pair:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ferry-fresh-", dir=options.folder))
        version = subprocess.run([python, "--version"], check=True, capture_output=True,
                                 text=True).stdout.split()[-1]
        row = {"python": version, "torch": torch}
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            try:
                row |= check(options.wheels.resolve(), python, torch, options.device, folder,
                             options.pip_option)
            except (Failed, subprocess.CalledProcessError) as error:
                row["failed"] = str(error)
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return any("failed" in row for row in rows)


if __name__ == "__main__":
    sys.exit(main())
