// Sparse tensors on the virtual GPU. Most of their operators LibTorch composes of dense ones, which
// run as any. Those that have a kernel of CUDA's own compute on the host: the values are copied
// there and back by the runtime, so the host waits for them, as it does for a GPU in most of these
// (it asks how many elements there are).
#pragma once

#include <string>

#include "vgpu/operators/kernels.h"

namespace ferry::vgpu {

// Whether LibTorch composes it for CUDA, and it makes sparse tensors of dense ones.
bool makes_sparse(const std::string& name);

// Puts kernels in the place of CUDA's own for sparse tensors. Once a process, for good.
void install_sparse_kernels(Installed& installed);

}  // namespace ferry::vgpu
