"""The same with the TRL that is installed, whose loss on CUDA is a Triton kernel. Its sums have
another order than the CPU's, so the weights are close and not the same.
"""

import tempfile

from trl_sft import trained

with tempfile.TemporaryDirectory() as folder:
    mine, wanted = trained(folder, False), trained(folder, True)
print(all((one - other).abs().max() < 1e-6 for one, other in zip(mine, wanted, strict=True)))
