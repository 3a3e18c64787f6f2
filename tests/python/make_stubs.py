"""Writes the types of the module (`_C.pyi`) as they are in the module that is imported.

    PYTHONPATH=build/dev/python python tests/python/make_stubs.py
"""

import pathlib
import re
import subprocess
import sys
import tempfile

STUBS = pathlib.Path(__file__).resolve().parents[2] / "python/torch_ferry/_C.pyi"
# An exception has the name of the package, where it is seen; it is the module's all the same.
ELSEWHERE = re.compile(r"^from torch_ferry import (\w+)\n", re.MULTILINE)


def stubs():
    from torch_ferry import _C

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pybind11_stubgen", "torch_ferry._C", "-o", folder,
                        "--exit-code"], check=True, capture_output=True, text=True)
        text = (pathlib.Path(folder) / "torch_ferry/_C.pyi").read_text(encoding="utf-8")
    classes = [f"class {name}({getattr(_C, name).__bases__[0].__name__}):\n    ...\n"
               for name in ELSEWHERE.findall(text)]
    return ELSEWHERE.sub("", text) + "".join(classes)


if __name__ == "__main__":
    STUBS.write_text(stubs(), encoding="utf-8")
