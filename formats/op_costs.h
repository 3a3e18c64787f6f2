// Computes the costs of a call of a PyTorch operator from its name and the layouts of its tensors.
//
// Only matmuls, convolutions and attention have FLOPs (op_products.h). All other operators are
// bound by bandwidth: their cost is the bytes of the distinct elements of their tensor arguments
// and results. If PyTorch 2.11 runs several kernels on a GPU, all are counted, and so are the bytes
// that go from one to the next (aten/src/ATen/native/cuda).
//
// No other code knows these costs. The virtual GPU and captures from C++ call this; real/op_costs
// makes it available to captures from Python.
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

// True if the operator reads no bytes of its arguments, at most their shapes.
bool reads_shapes_only(std::string_view name);
// True if the operator does not write the bytes of its results.
bool writes_nothing(std::string_view name);
// True if the operator does not read the tensor that it writes in place.
bool overwrites(std::string_view name);

}  // namespace ferry
