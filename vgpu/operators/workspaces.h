// The workspaces that LibTorch allocates for cuBLAS. The CPU's kernels do not need them; they are
// allocated so that peaks are as on a GPU. Their size depends on the card and on
// CUBLAS_WORKSPACE_CONFIG.
//
// Since 2.15 each matmul takes the workspace of the library that it calls, cuBLAS or cuBLASLt,
// which adds a bias, and gives it back. LibTorch before that, and with
// TORCH_CUBLAS_WORKSPACE_CACHE=1, keeps them: it has a cuBLAS handle for each thread, and when a
// thread ends, a later one takes its handle over. For each handle and stream the first matmul
// allocates one workspace (aten/src/ATen/cuda/CUDABlas.cpp, CublasHandlePool.cpp), and cuBLASLt one
// more. So forward and backward have two.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::vgpu {

// From now on workspaces and temporaries (temporaries.h) are allocated; before this call they are
// not.
void keep_workspaces();
bool keeps_workspaces();

// Call it before the operator `name` ("aten.mm") is queued on the stream. Makes the workspaces that
// are kept, and returns the bytes of those that only this operator takes. Throws LibTorch's own
// error if there is no memory left.
std::vector<std::int64_t> make_workspaces(const std::string& name,
                                          const std::vector<c10::IValue>& arguments,
                                          const c10::cuda::CUDAStream& stream);

}  // namespace ferry::vgpu
