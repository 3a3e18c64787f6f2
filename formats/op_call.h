// A call of one of PyTorch's operators, as its costs are counted (formats/op_costs.h): its name,
// the layouts of its tensors, and the few other arguments that say which kernels run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/program.h"

namespace ferry {

// Arguments by PyTorch's names, with its defaults.
struct OpFlags {
  bool is_causal = false;
  bool transposed = false;
  bool accumulate = false;
  bool unsafe = false;
  bool include_self = true;
  bool reduce_mean = false;  // `reduce` is "mean"

  // Where a name is none of these, nothing changes.
  void set(std::string_view argument, bool value);
  void set(std::string_view argument, std::string_view text);
};

struct OpCall {
  std::string_view name;              // "aten.mm", without an overload
  std::vector<const Layout*> in;      // none of them null; not owned
  std::vector<const Layout*> out;     // of results with storages of their own
  std::vector<std::uint32_t> writes;  // positions in `in`
  OpFlags flags{};
};

// What kernels move through memory.
struct OpTraffic {
  std::int64_t kernels = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  OpTraffic& operator+=(const OpTraffic& more);
};

// Elements of a shape, from this dimension on.
std::int64_t elements_of(const std::vector<std::int64_t>& shape, std::size_t from = 0);
// Without those that an expanded dimension repeats.
std::int64_t distinct_bytes(const Layout& layout);

}  // namespace ferry
