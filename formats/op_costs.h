// What a call of one of PyTorch's operators costs, by its name and the layouts of its tensors.
//
// A name is "aten.mm", without an overload. FLOPs are counted for matmuls, convolutions and
// attention: of causal attention those of the pairs that the mask leaves, for kernels of attention
// skip the others (PyTorch's flop counter counts all). Everything else is bound by bandwidth: bytes
// of the distinct elements of its tensor arguments and results. Where PyTorch 2.11 runs several
// kernels on a GPU, they are counted, with the bytes that go from one to the next
// (aten/src/ATen/native/cuda).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/program.h"

namespace ferry {

struct OpCall {
  std::string_view name;
  std::vector<const Layout*> in;      // none of them null; not owned
  std::vector<const Layout*> out;     // of results with storages of their own
  std::vector<std::uint32_t> writes;  // positions in `in`
  bool is_causal = false;             // its argument of that name
};

struct OpCosts {
  std::int64_t flops = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  std::int64_t kernels = 1;
  MatrixProduct product{};
  bool operator==(const OpCosts&) const = default;
};
OpCosts op_costs(const OpCall& call);

// How the names of kernels of attention begin.
inline constexpr std::string_view kAttention = "aten._scaled_dot_product";
inline bool is_attention(std::string_view name) { return name.starts_with(kAttention); }

// True if it reads no bytes of its arguments, only shapes at most, and leaves its results' bytes as
// they are.
bool reads_shapes_only(std::string_view name);
bool writes_nothing(std::string_view name);
// True if it does not read what it writes in place.
bool overwrites(std::string_view name);

}  // namespace ferry
