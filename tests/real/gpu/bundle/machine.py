"""What this machine has: an installed torch, GPUs, tools. Nothing of it is imported: torch is
found, and the programs of the bundle are told where its libraries are."""

import importlib.util
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys

NO_GPU = 77  # ferry_gpu_tests, where LibTorch sees none


class Missing(Exception):
    """What a run cannot do without is not here."""


def torch_folder(given):
    if given:
        return given
    found = importlib.util.find_spec("torch")
    if not found or not found.origin:
        raise Missing(f"no torch is installed for {sys.executable}: run this with the Python that "
                      "has one, or say --torch FOLDER")
    return pathlib.Path(found.origin).parent


def torch_version(folder):
    try:
        text = (folder / "version.py").read_text()
        return re.search(r"__version__ = '([^']+)'", text)[1]
    except (OSError, TypeError):
        raise Missing(f"{folder}: expected the `torch` folder of an installed PyTorch wheel, with "
                      "version.py") from None


def minor(version):
    return ".".join(version.split(".")[:2])


class Machine:
    def __init__(self, bundle, torch=None, virtual=False):
        self.bundle = bundle
        self.facts = json.loads((bundle / "bundle.json").read_text())
        self.virtual = virtual
        self.torch = torch_folder(torch)
        self.version = torch_version(self.torch)
        if minor(self.version) != minor(self.facts["torch"]):
            raise Missing(f"this bundle was built for torch {minor(self.facts['torch'])}, and "
                          f"{self.torch} is {self.version}")
        self.environment = self._environment()
        self.gpus = self._probe()
        self.tools = self._tools()

    def _environment(self):
        """Of what runs: this one's, without what would lead LibTorch or Python astray."""
        kept = {key: value for key, value in os.environ.items()
                if key in ("PATH", "HOME", "LANG", "TERM", "TMPDIR", "CUDA_VISIBLE_DEVICES",
                           "PYTHONPATH", "VIRTUAL_ENV")}
        kept.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        libraries = [*([self.bundle / "virtual"] if self.virtual else []),
                     self.bundle / "lib", self.torch / "lib",
                     *sorted(self.torch.parent.glob("nvidia/cu*/lib"))]
        kept["LD_LIBRARY_PATH"] = ":".join(
            [str(folder) for folder in libraries if folder.is_dir()]
            + [path for path in [os.environ.get("LD_LIBRARY_PATH")] if path])
        kept["BUNDLE"], kept["BIN"] = str(self.bundle), str(self.bundle / "bin")
        kept["PYTHON"], kept["TORCH"] = sys.executable, str(self.torch)
        kept["DEVICE"] = "cuda"
        kept["PYTHONUNBUFFERED"] = "1"
        if self.virtual:
            kept["SMALL"] = "1"
            kept["BIN"] = str(self._preloaded(kept))
            kept["PYTHON"] = f"{kept['BIN']}/python"
        return kept

    def _preloaded(self, environment):
        """A folder of the same programs, each with the virtual GPU before its own: bash and what
        else a part runs has none."""
        library = self.bundle / "virtual" / "libferry_virtual_gpu.so"
        if not library.exists():
            raise Missing(f"the bundle was packed without {library.name}")
        folder = self.bundle / "virtual" / "bin"
        folder.mkdir(exist_ok=True)
        programs = [*(self.bundle / "bin").iterdir(), pathlib.Path(environment["PYTHON"])]
        for program in programs:
            name = "python" if program == programs[-1] else program.name
            (folder / name).write_text(f"#!/bin/sh\nLD_PRELOAD={shlex.quote(str(library))} "
                                       "FERRY_PRELOADED_GPU=1 FERRY_PRELOADED_GPU_TEMPO=eager "
                                       f"exec {shlex.quote(str(program))} \"$@\"\n")
            (folder / name).chmod(0o755)
        return folder

    def _probe(self):
        command = [pathlib.Path(self.environment["BIN"]) / "ferry_gpu_tests", "--probe"]
        try:
            ran = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                                 timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Missing(f"ferry_gpu_tests cannot run here: {error}") from None
        if ran.returncode == NO_GPU:
            raise Missing(ran.stdout.strip().removeprefix("skipped: "))
        if ran.returncode != 0:
            raise Missing(f"ferry_gpu_tests cannot run here (exit {ran.returncode}): "
                          f"{(ran.stderr or ran.stdout).strip()[-2000:]}")
        return json.loads(ran.stdout.splitlines()[-1])

    def _tools(self):
        found = {tool: shutil.which(tool, path=self.environment["PATH"])
                 for tool in ("bash", "compute-sanitizer", "nsys", "nvidia-smi", "g++")}
        if not found["bash"]:
            raise Missing("bash is not on the PATH: the parts are its scripts")
        return found

    def lacks(self, need):
        """Why a part that needs this cannot run here; None where it can."""
        if need == "gpu":
            return "the virtual CUDA runtime is no GPU" if self.virtual else None
        if need in self.tools:
            return None if self.tools[need] else f"no {need} on the PATH"
        if (self.bundle / need).exists():
            return None
        return f"the bundle was packed without {need}"

    def driver(self):
        """The driver's own version where nvidia-smi tells it, else the CUDA version it serves."""
        if self.tools["nvidia-smi"] and not self.virtual:
            query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
            ran = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
            if ran.returncode == 0 and ran.stdout.strip():
                return ran.stdout.split()[0]
        return f"of CUDA {self.gpus['driver'] // 1000}.{self.gpus['driver'] % 1000 // 10}"

    def headline(self):
        names = ", ".join(f"{gpu['name']} ({gpu['bytes'] / 2**30:.1f} GiB)"
                          for gpu in self.gpus["gpus"])
        return (f"{names}; driver {self.driver()}; torch {self.version}; "
                f"glibc {platform.libc_ver()[1]}; Ferry {self.facts['version']} "
                f"({self.facts['commit']})")
