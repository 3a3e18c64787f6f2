// The workspaces that LibTorch allocates for cuBLAS, and that no operator gives back. The CPU's
// kernels do not need them; they are allocated so that peaks are as on a GPU.
//
// LibTorch has a cuBLAS handle for each thread; when a thread ends, a later one takes its handle
// over. For each handle and stream the first matmul allocates one workspace
// (aten/src/ATen/cuda/CUDABlas.cpp, CublasHandlePool.cpp), and cuBLASLt, which adds a bias, one
// more. So forward and backward have two. Their size depends on the card and on
// CUBLAS_WORKSPACE_CONFIG.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/cuda/CUDAStream.h>

#include <string>
#include <vector>

namespace ferry::vgpu {

// From now on workspaces and temporaries (temporaries.h) are allocated; before this call they are
// not.
void keep_workspaces();
bool keeps_workspaces();

// Call it before the operator `name` ("aten.mm") is queued on the stream. Throws LibTorch's own
// error if there is no memory left.
void make_workspaces(const std::string& name, const std::vector<c10::IValue>& arguments,
                     const c10::cuda::CUDAStream& stream);

}  // namespace ferry::vgpu
