#include "formats/op_puts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/layout.h"

namespace ferry {
namespace {

constexpr std::int64_t kIndex = 8;  // bytes
// cub's radix sort of 8-byte keys and positions runs in one kernel, or in passes of 8 bits after
// two kernels that count (as tuned for compute capability 8.0 and up: 256 threads, 9 items each).
constexpr std::int64_t kSortedAtOnce = 256 * 9;
constexpr std::int64_t kBitsAPass = 8;
constexpr std::int64_t kCountingKernels = 2;

enum class Kind : std::uint8_t { kNone, kIndexPut, kScatter, kScatterReduce, kIndexAdd };

struct Put {
  Kind kind = Kind::kNone;
  bool adds = false;
};

Put kind_of(const OpCall& call) {
  std::string_view name = call.name;
  if (!name.starts_with("aten.")) return {};
  name.remove_prefix(5);
  if (name == "_index_put_impl_" || name == "_unsafe_index_put") {
    return {Kind::kIndexPut, call.flags.accumulate};
  }
  if (name.ends_with("_")) name.remove_suffix(1);
  if (name == "index_put") return {Kind::kIndexPut, call.flags.accumulate};
  if (name == "scatter") return {Kind::kScatter, false};
  if (name == "scatter_add") return {Kind::kScatter, true};
  if (name == "scatter_reduce") return {Kind::kScatterReduce, true};
  if (name == "index_add") return {Kind::kIndexAdd, true};
  if (name == "index_copy") return {Kind::kIndexAdd, false};
  return {};
}

// Returns how many bytes the largest row number needs: the sort makes one pass for each.
std::int64_t passes_of(std::int64_t rows) {
  std::int64_t passes = 1;
  for (std::int64_t last = (rows - 1) >> kBitsAPass; last > 0; last >>= kBitsAPass) ++passes;
  return passes;
}

// Returns the traffic of the kernels before the one that adds. `tensors` index tensors select
// `count` positions in `rows`.
OpTraffic sorting(std::int64_t count, std::int64_t tensors, std::int64_t rows, bool checks) {
  const std::int64_t each = count * kIndex;
  OpTraffic all;
  if (checks) all += {6 * tensors, 2 * tensors * each, 0};       // minimum and maximum are checked
  all += {2 * tensors, 2 * tensors * each, 2 * tensors * each};  // wrap, multiply by the stride
  all += {tensors - 1, 2 * (tensors - 1) * each, (tensors - 1) * each};  // sum
  all += {2, each, 2 * each};  // divide by the slice's size; make a list of positions
  const bool at_once = count <= kSortedAtOnce;
  const std::int64_t passes = at_once ? 1 : passes_of(rows);
  all += {passes + (at_once ? 0 : kCountingKernels), (2 * passes + (at_once ? 0 : 1)) * each,
          2 * passes * each};
  return all;
}

// Returns the traffic of the kernels for the mean of scatter_reduce: it also adds up ones, and
// divides the sums by their counts.
OpTraffic dividing(const OpCall& call, std::int64_t count) {
  const std::int64_t whole = distinct_bytes(*call.in[0]);
  const std::int64_t elements = elements_of(call.in[0]->shape);
  const std::int64_t ones = call.in.size() > 2 ? distinct_bytes(*call.in[2]) : 0;
  const std::int64_t added = std::min(count, elements) * itemsize(call.in[0]->dtype);
  OpTraffic all{2, 0, ones + whole};  // fill with ones, or zeros
  all += {1, count * kIndex + ones + added, added};
  all += {1, whole, elements};  // find counts of 0
  all += {1, elements, whole};  // replace them by 1
  all += {1, 2 * whole, whole};
  return all;
}

}  // namespace

std::optional<OpTraffic> put_traffic(const OpCall& call) {
  const Put put = kind_of(call);
  if (put.kind == Kind::kNone || call.in.size() < 2) return std::nullopt;
  const Layout& into = *call.in[0];
  const bool has_values = call.in.size() > 2;
  const Layout& values = *call.in.back();  // the index, if the new value is a number
  const bool by_index = put.kind == Kind::kIndexPut;
  std::int64_t indices = 0, index_bytes = 0, index_tensors = 0;
  for (std::size_t i = 1; i < call.in.size() - (has_values ? 1 : 0); ++i) {
    indices = std::max(indices, elements_of(call.in[i]->shape));
    index_bytes += distinct_bytes(*call.in[i]);
    ++index_tensors;
  }
  const std::int64_t elements = elements_of(into.shape);
  std::int64_t count = indices;  // number of values that are written
  if (by_index || put.kind == Kind::kIndexAdd) {
    count = std::max(indices, elements_of(values.shape));
  }
  const std::int64_t touched = std::min(count, elements) * itemsize(into.dtype);
  const std::int64_t given = has_values ? distinct_bytes(values) : 0;
  OpTraffic all{1, index_bytes + given + (put.adds ? touched : 0), touched};
  if (by_index && put.adds && indices > 0) {
    const std::int64_t slice = std::max<std::int64_t>(count / indices, 1);
    all += sorting(indices, index_tensors, elements / slice, !call.flags.unsafe);
    // The kernel that adds reads the sorted list instead of the indices.
    all.read_bytes += 2 * indices * kIndex - index_bytes;
  }
  if (put.kind == Kind::kScatterReduce) {
    if (!call.flags.include_self) all += {1, index_bytes, touched};
    if (call.flags.reduce_mean) all += dividing(call, count);
  }
  if (!call.out.empty()) {
    const std::int64_t copies = put.kind == Kind::kScatterReduce ? 2 : 1;
    const std::int64_t whole = distinct_bytes(*call.out[0]);
    all += {copies, copies * distinct_bytes(into), copies * whole};
  }
  return all;
}

}  // namespace ferry
