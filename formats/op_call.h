// A call of a PyTorch operator, with all that its costs depend on (formats/op_costs.h): its name,
// the layouts of its tensors, and the few other arguments that decide which kernels run. Captures
// make such calls. The call owns neither its name nor its layouts.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/program.h"

namespace ferry {

// Arguments under PyTorch's names, with its defaults.
struct OpFlags {
  bool is_causal = false;
  bool transposed = false;
  bool accumulate = false;
  bool unsafe = false;
  bool include_self = true;
  bool reduce_mean = false;  // `reduce` is "mean"

  // Any other name is ignored.
  void set(std::string_view argument, bool value);
  void set(std::string_view argument, std::string_view text);
};

struct OpCall {
  std::string_view name;              // "aten.mm", without an overload
  std::vector<const Layout*> in;      // none is null; not owned
  std::vector<const Layout*> out;     // results that have their own storages
  std::vector<std::uint32_t> writes;  // positions in `in`
  OpFlags flags{};
};

// The number of kernels, and the bytes that they read and write.
struct OpTraffic {
  std::int64_t kernels = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  OpTraffic& operator+=(const OpTraffic& more);
};

// Returns the number of elements of a shape, from dimension `from` on.
std::int64_t elements_of(const std::vector<std::int64_t>& shape, std::size_t from = 0);
// Returns the bytes of a tensor's distinct elements: those that an expanded dimension repeats count
// once.
std::int64_t distinct_bytes(const Layout& layout);

}  // namespace ferry
