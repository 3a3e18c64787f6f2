// A plan: the choice for each saved tensor of a program on a card, and the predicted cost. The real
// device runs it from a file (plan_file.h).
//
// A saved tensor is identified by its number among all packs of its frame, which is the forward or
// the recomputed segment that saves it. Segments are numbered in the order of their calls. Entries
// are in the order of packing. The inputs of a recomputed segment are packs of the forward. Entries
// with the same `group` share a storage, which is kept or offloaded as a whole.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/program.h"

namespace ferry {

// kRecompute is only for tensors of a recomputed segment.
enum class PlanChoice : std::uint8_t { kKeep, kOffload, kRecompute };

struct PlanEntry {
  std::uint64_t pack = 0;
  std::string op;  // the node that saves it
  Layout layout;   // its offset is not a part of the plan
  std::uint64_t group = 0;
  PlanChoice decision = PlanChoice::kKeep;
  std::optional<std::uint64_t> segment = {};  // the recomputed segment that saves it
  bool operator==(const PlanEntry&) const = default;
};

struct PlanSegment {
  std::string name;
  bool recompute = false;
  bool operator==(const PlanSegment&) const = default;
};

// A span: the operators of the forward from `first` to `last`. Backward recomputes them, except
// those in `keep` (formats/spans.h). Operators are numbered among the operators of the forward;
// their names are stored only to compare them.
//
// Spans can nest. Each span in `inner` is recomputed separately, when backward reaches it. It
// starts from tensors that the outer span recomputed. So the outer span recomputes only the tensors
// that its own nodes saved and the inputs of its inner spans. The outer span may recompute an
// operator that an inner span keeps.
struct PlanSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::string first_op = {};
  std::string last_op = {};
  std::vector<std::uint64_t> keep = {};  // in order, each from `first` to `last`
  std::vector<PlanSpan> inner = {};      // in order, each within this one
  bool operator==(const PlanSpan&) const = default;
  // A default <=> would need that of `inner`, which needs this one. And two `<` at each level would
  // double the work with each level.
  std::strong_ordering operator<=>(const PlanSpan& other) const {
    const auto own = std::tie(first, last, first_op, last_op, keep) <=>
                     std::tie(other.first, other.last, other.first_op, other.last_op, other.keep);
    if (own != 0) return own;
    return std::lexicographical_compare_three_way(
        inner.begin(), inner.end(), other.inner.begin(), other.inner.end(),
        [](const PlanSpan& a, const PlanSpan& b) { return a <=> b; });
  }
};

// Deeper spans are an error, because each level records its operators once more.
inline constexpr std::size_t kSpanDepth = 64;

struct Prediction {
  std::int64_t peak_bytes = 0;      // bytes allocated
  std::int64_t reserved_bytes = 0;  // with fragmentation; must fit in the device
  std::int64_t host_bytes = 0;      // pinned bytes
  std::int64_t step_ns = 0;
  bool operator==(const Prediction&) const = default;
};

struct Plan {
  std::string program;
  std::string program_digest;
  std::string hardware;
  std::string policy;
  std::vector<std::pair<std::string, std::int64_t>> options;  // the offloader's options, in order
  Prediction predicted;
  // In the order of their calls. Calls inside a segment run without a checkpoint.
  std::vector<PlanSegment> segments = {};
  // In the order of the forward. A plan with spans has no segments, and its entries are the packs
  // that hooks around the spans see.
  std::vector<PlanSpan> spans = {};
  std::vector<PlanEntry> entries;
  // The options of PyTorch's allocator for which the plan was made (formats/alloc_conf.h), as in
  // PYTORCH_CUDA_ALLOC_CONF; empty for the defaults.
  std::string alloc_conf = {};
  bool operator==(const Plan&) const = default;
};

}  // namespace ferry
