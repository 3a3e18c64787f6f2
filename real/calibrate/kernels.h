// The kernels, copies and fills of a model's step on a GPU, for `ferry calibrate --kernels`. CUPTI
// times them, through LibTorch's own profiler (Kineto).
//
// A kernel table of `--times` has the time of each op, between two events, including the gaps
// between its kernels. The file of `--kernels` has the own time of each kernel, on the GPU's clock.
// The sum of these is at most that of the ops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "real/train/options.h"

namespace ferry::real::calibrate {

struct KernelUse {
  std::string name;  // demangled, or "Memcpy DtoD (Device -> Device)"
  std::int64_t count = 0;
  std::int64_t total_ns = 0;
};

// Profiles one forward and backward, after one to warm up. The longest kernels come first. Throws
// train::ResourceMissing if CUPTI sees none.
std::vector<KernelUse> measure_kernels(const train::Options& model);

// Returns a JSON object with a description and each kernel.
std::string kernels_json(const std::vector<KernelUse>& kernels, const std::string& device,
                         const std::string& date);

}  // namespace ferry::real::calibrate
