// A plan: what to do with each saved tensor of a program on a piece of hardware, and what that was
// predicted to cost. What the real device executes is this, read from a file (plan_file.h).
//
// A saved tensor's key is its ordinal among the packs of one forward, counting every pack: entry i
// is pack i. Entries of one `group` share a storage and carry the same decision.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/program.h"

namespace ferry {

enum class PlanChoice : std::uint8_t { kKeep, kOffload };

struct PlanEntry {
  std::uint64_t pack = 0;
  std::string op;  // the node that saves it
  Layout layout;   // its offset is not part of the plan
  std::uint64_t group = 0;
  PlanChoice decision = PlanChoice::kKeep;
  bool operator==(const PlanEntry&) const = default;
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
  std::vector<PlanEntry> entries;
  bool operator==(const Plan&) const = default;
};

}  // namespace ferry
