// What CUDA's own kernels take of LibTorch's caching allocator while they run, and give back.
//
// The sizes are those of scenarios/cuda_memory.h.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::vgpu {

// Each piece's bytes as it is taken, and -k where the k-th of them is given back, for the operator
// `name` ("aten.sum").
std::vector<std::int64_t> temporaries(const std::string& name,
                                      const std::vector<c10::IValue>& arguments,
                                      const std::vector<c10::IValue>& results);

// Takes them, and gives them back with this object: once the operator is in the stream.
class Temporaries {
 public:
  // Throws LibTorch's own error where there is no memory left.
  Temporaries(const std::vector<std::int64_t>& steps, const c10::cuda::CUDAStream& stream);
  ~Temporaries();
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;

 private:
  std::vector<void*> taken_;
};

}  // namespace ferry::vgpu
