"""What a script tells the virtual GPU of `ferry run`. Elsewhere these functions do nothing.

The virtual GPU runs no compiled kernels. An operator that has only a CUDA kernel needs somebody who
gives its values: a stand-in. What the operator reads and writes, and what it takes of the card's
memory and time, still comes from its schema, and the end of the run names it.
"""

import sys


def stand_in(name, function):
    """Computes the operator `name` ("space::name" or "space::name.overload") with `function`.

    The function gets the arguments of the operator, with CPU tensors in place of CUDA tensors. It
    returns what the operator returns, on the CPU, and writes those arguments that the operator
    writes. It must not write others, nor keep any of them. Its results have the shapes that a fake
    implementation of the operator says, if there is one. If not, the host waits for each call.

    Raises a ValueError if no such operator is registered.
    """
    gpu = sys.modules.get("ferry_virtual_gpu")
    if gpu is not None:
        gpu.stand_in(name, function)
