"""Prints how much time `import torch_ferry` adds to `import torch`, in ms.

fresh.py runs it, and fails if torch_ferry is not an installed one.
"""

import time

import torch

begin = time.perf_counter()
import torch_ferry

assert "site-packages" in torch_ferry.__file__, torch_ferry.__file__
print(torch.__version__, f"{1e3 * (time.perf_counter() - begin):.1f}")
