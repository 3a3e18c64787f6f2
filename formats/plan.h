// A plan: the choice for each saved tensor of a program on a piece of hardware, and the predicted
// cost. The real device executes it from a file (plan_file.h).
//
// A saved tensor's key is its ordinal among the packs of its frame, counting every pack: of the
// forward, or of the recomputed segment that it is saved in. Segments are known by the order in
// which they are called. Entries are in the order of packing; a recomputed segment's inputs are
// packs of the forward. Entries of one `group` share a storage, which is kept or offloaded as one.
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

// Recompute applies in a recomputed segment only.
enum class PlanChoice : std::uint8_t { kKeep, kOffload, kRecompute };

struct PlanEntry {
  std::uint64_t pack = 0;
  std::string op;  // the node that saves it
  Layout layout;   // the offset is no part of the plan
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

// Operators of the forward, from `first` to `last`, which run again in backward but for those in
// `keep` (formats/spans.h). They are known by their place among the operators of the forward, and
// the names are there to compare.
//
// Spans nest. Those in `inner` run again each for itself, when its part of backward comes, from
// what the outer one's replay made for them: so that one makes only what its own nodes save, and
// what each inner one begins from. An operator that an inner span keeps may run again in the outer
// one.
struct PlanSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::string first_op = {};
  std::string last_op = {};
  std::vector<std::uint64_t> keep = {};  // in order, each from `first` to `last`
  std::vector<PlanSpan> inner = {};      // in order, each within this one
  bool operator==(const PlanSpan&) const = default;
  // (A default one would ask for that of `inner`, which asks for this one; and two `<` at each
  // level would double the work with each.)
  std::strong_ordering operator<=>(const PlanSpan& other) const {
    const auto own = std::tie(first, last, first_op, last_op, keep) <=>
                     std::tie(other.first, other.last, other.first_op, other.last_op, other.keep);
    if (own != 0) return own;
    return std::lexicographical_compare_three_way(
        inner.begin(), inner.end(), other.inner.begin(), other.inner.end(),
        [](const PlanSpan& a, const PlanSpan& b) { return a <=> b; });
  }
};

// Deeper spans are refused: each level records its operators once more.
inline constexpr std::size_t kSpanDepth = 64;

struct Prediction {
  std::int64_t peak_bytes = 0;      // bytes allocated
  std::int64_t reserved_bytes = 0;  // with fragmentation: must fit the device
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
  // In calling order; calls inside a segment run without a checkpoint.
  std::vector<PlanSegment> segments = {};
  // In order of the forward; a plan has no segments beside them. Then entries are of the packs that
  // hooks around the spans see.
  std::vector<PlanSpan> spans = {};
  std::vector<PlanEntry> entries;
  // The options of PyTorch's allocator that it was planned under (formats/alloc_conf.h), as
  // PYTORCH_CUDA_ALLOC_CONF has them; "": the usual ones.
  std::string alloc_conf = {};
  bool operator==(const Plan&) const = default;
};

}  // namespace ferry
