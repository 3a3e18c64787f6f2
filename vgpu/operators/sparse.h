// Operators of sparse tensors on the virtual GPU. The kernels of kernels.h work on views of dense
// bytes only, so sparse tensors need kernels of their own.
//
// LibTorch makes most of them of dense operators, which run like any other. Those that have a CUDA
// kernel of their own compute on the host. The runtime copies their values there and back, so the
// host waits for them. On a GPU the host waits in most of them too, to learn how many elements
// there are.
#pragma once

#include <string>

#include "vgpu/operators/kernels.h"

namespace ferry::vgpu {

// Returns whether LibTorch makes this operator of others on CUDA, and whether it turns dense
// tensors into sparse ones: both must be so.
bool makes_sparse(const std::string& name);

// Replaces CUDA's own kernels for sparse tensors. Call it once a process; it stays in force.
void install_sparse_kernels(Installed& installed);

}  // namespace ferry::vgpu
