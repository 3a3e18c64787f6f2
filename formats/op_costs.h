// What a call of one of PyTorch's operators costs, by its name and the layouts of its tensors.
//
// FLOPs are those of matmuls, convolutions and attention (op_products.h). Everything else is bound
// by bandwidth: bytes of the distinct elements of its tensor arguments and results. Where PyTorch
// 2.11 runs several kernels on a GPU, they are counted, with the bytes that go from one to the next
// (aten/src/ATen/native/cuda).
//
// This is the one place that says so. The virtual GPU and captures from C++ call it; real/op_costs
// hands it to captures from Python.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/op_call.h"
#include "formats/program.h"

namespace ferry {

struct OpCosts {
  std::int64_t flops = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  std::int64_t kernels = 1;
  std::vector<MatrixProduct> products{};
  bool operator==(const OpCosts&) const = default;
};
OpCosts op_costs(const OpCall& call);

// True if it reads no bytes of its arguments, only shapes at most, and leaves its results' bytes as
// they are.
bool reads_shapes_only(std::string_view name);
bool writes_nothing(std::string_view name);
// True if it does not read what it writes in place.
bool overwrites(std::string_view name);

}  // namespace ferry
