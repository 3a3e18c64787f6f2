// The workspaces that LibTorch allocates for cuBLAS, which no operator gives back.
//
// LibTorch has a handle of cuBLAS for each thread, which a later thread takes over, and one
// workspace for each handle and stream, made by the first matmul there (aten/src/ATen/cuda/
// CUDABlas.cpp, CublasHandlePool.cpp). cuBLASLt, which adds a bias, has one beside it. So forward
// and backward have two, and how large they are depends on the card and on CUBLAS_WORKSPACE_CONFIG.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/cuda/CUDAStream.h>

#include <string>
#include <vector>

namespace ferry::vgpu {

// From now on they are allocated, by LibTorch's caching allocator; at first they are not.
void keep_workspaces();
bool keeps_workspaces();

// Before the operator `name` ("aten.mm") is queued on the stream. Throws LibTorch's own error where
// there is no memory left.
void make_workspaces(const std::string& name, const std::vector<c10::IValue>& arguments,
                     const c10::cuda::CUDAStream& stream);

}  // namespace ferry::vgpu
