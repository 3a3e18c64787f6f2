// The memory that CUDA's own kernels take from LibTorch's caching allocator while they run, and
// give back afterwards. The CPU's kernels do not need it; it is allocated so that peaks are as on a
// GPU.
//
// scenarios/cuda_memory.h has the sizes, and lists the operators. run.cpp takes the memory when it
// queues an operator. Before keep_workspaces() (workspaces.h) no memory is taken.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::vgpu {

// Returns the steps for the operator `name` ("aten.sum"), in order: the size of a piece in bytes
// when it is taken, and -k when the k-th piece is given back.
std::vector<std::int64_t> temporaries(const std::string& name,
                                      const std::vector<c10::IValue>& arguments,
                                      const std::vector<c10::IValue>& results);

// Takes this memory, and gives back what is left of it when the object dies. By then the operator
// must be in the stream.
class Temporaries {
 public:
  // Throws LibTorch's own error if there is no memory left.
  Temporaries(const std::vector<std::int64_t>& steps, const c10::cuda::CUDAStream& stream);
  ~Temporaries();
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;

 private:
  std::vector<void*> taken_;
};

}  // namespace ferry::vgpu
