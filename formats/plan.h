// A plan: what to do with each saved tensor of a program on a piece of hardware, and what that was
// predicted to cost. What the real device executes is this, read from a file (plan_file.h).
//
// A saved tensor's key is its ordinal among the packs of its frame, counting every pack: of the
// forward, or of the recomputed segment that it is saved in. Segments are known by the order in
// which they are called. Entries are in the order of packing; a recomputed segment's inputs are
// packs of the forward. Entries of one `group` share a storage, which is kept or offloaded as one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/program.h"

namespace ferry {

// Recompute: in a recomputed segment alone.
enum class PlanChoice : std::uint8_t { kKeep, kOffload, kRecompute };

struct PlanEntry {
  std::uint64_t pack = 0;
  std::string op;  // the node that saves it
  Layout layout;   // its offset is not part of the plan
  std::uint64_t group = 0;
  PlanChoice decision = PlanChoice::kKeep;
  std::optional<std::uint64_t> segment = {};  // the recomputed one that it is saved in
  bool operator==(const PlanEntry&) const = default;
};

struct PlanSegment {
  std::string name;
  bool recompute = false;
  bool operator==(const PlanSegment&) const = default;
};

struct Prediction {
  std::int64_t peak_bytes = 0;      // allocated
  std::int64_t reserved_bytes = 0;  // with fragmentation: what must fit
  std::int64_t host_bytes = 0;      // pinned
  std::int64_t step_ns = 0;
  bool operator==(const Prediction&) const = default;
};

struct Plan {
  std::string program;
  std::string program_digest;
  std::string hardware;
  std::string policy;
  std::vector<std::pair<std::string, std::int64_t>> options;  // of the offloader, in their order
  Prediction predicted;
  // In the order in which they are called; those inside just run.
  std::vector<PlanSegment> segments = {};
  std::vector<PlanEntry> entries;
  bool operator==(const Plan&) const = default;
};

}  // namespace ferry
