"""Whether the module was built for the torch and the Python that are here.

It is of one minor version of each: it is a subclass of LibTorch's autograd engine, and in another
version's process wrong functions would be called, without a word. So this is asked before any of
it is loaded. Standard library only, but for torch itself.
"""

import re
import sys


def minor(version):
    """ "2.11" of "2.11.0+cu130" and of "2.11.0a0+git1234"."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version


def require(built):
    """Imports torch. Raises ImportError where the module, of `built`, is not for what is here."""
    ours = (f"torch_ferry {built.VERSION} was built for torch {built.TORCH} "
            f"and Python {built.PYTHON}")
    python = minor(sys.version)
    if python != built.PYTHON:
        raise ImportError(f"{ours}; this is Python {python}. Install it with this Python's pip")
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"{ours}; torch cannot be imported ({error}). "
                          f"Install it: pip install 'torch=={built.TORCH}.*'") from error
    if minor(torch.__version__) != built.TORCH:
        raise ImportError(
            f"{ours}; this is torch {torch.__version__}. Install that torch "
            f"(pip install 'torch=={built.TORCH}.*'), or build torch_ferry for this one, in its "
            "source tree: pip install --no-build-isolation .")
