"""TRL's OffloadActivations, from a folder that holds its file.

The file imports accelerate, transformers and psutil for four small things: a logger, a comparison
of versions, whether the device is an NPU, and how full the host's memory is (asked once, for a
warning). Where one of these packages is absent, what the file asks of it is answered here, and the
row says so. Nothing that the file does with tensors or streams is touched.
"""

import importlib
import importlib.util
import logging
import pathlib
import re
import sys
import types

import torch

PLACES = ("activation_offloading.py", "trl/models/activation_offloading.py",
          "models/activation_offloading.py")


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version.split("+")[0])][:3]


def is_torch_version(operation, version):
    found, asked = numbers(torch.__version__), numbers(version)
    return {">=": found >= asked, ">": found > asked, "<": found < asked, "<=": found <= asked,
            "==": found == asked}[operation]


def virtual_memory():
    with open("/proc/meminfo", encoding="ascii") as file:
        kib = {line.split(":")[0]: int(line.split()[1]) for line in file}
    percent = 100 * (kib["MemTotal"] - kib["MemAvailable"]) / kib["MemTotal"]
    return types.SimpleNamespace(percent=percent)


ANSWERS = {
    "accelerate.logging": {"get_logger": logging.getLogger},
    "accelerate.utils.versions": {"is_torch_version": is_torch_version},
    "transformers": {"is_torch_npu_available": lambda: False},
    "psutil": {"virtual_memory": virtual_memory},
}


def answer_for_absent():
    """The packages that are absent, now answered for."""
    absent = []
    for name, attributes in ANSWERS.items():
        package = name.split(".")[0]
        if package not in absent:
            try:
                importlib.import_module(name)
                continue
            except ImportError:
                absent.append(package)
        parts = name.split(".")
        for whole in (".".join(parts[:i + 1]) for i in range(len(parts))):
            if sys.modules.get(whole) is None:
                sys.modules[whole] = types.ModuleType(whole)
        vars(sys.modules[name]).update(attributes)
    return absent


def load(folder):
    """The module of TRL's file, and what is to be said of it. Raises FileNotFoundError."""
    for place in PLACES:
        path = pathlib.Path(folder) / place
        if path.is_file():
            break
    else:
        raise FileNotFoundError(f"no activation_offloading.py in {folder}")
    absent = answer_for_absent()
    spec = importlib.util.spec_from_file_location("trl_activation_offloading", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    note = f"without {', '.join(absent)}, which are answered for" if absent else ""
    return module, note
