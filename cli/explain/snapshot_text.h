// Says in words what the memory in a PyTorch memory snapshot was for (sim/peak/snapshot_peak.h), as
// a table with bars or as JSON.
//
// Owners are blocks with the same time, place and operator (sim/peak/stack_words.h). Where no block
// has a stack, blocks of one size are an owner. The cost of an offload is arithmetic on the card's
// link. A snapshot has neither operators nor times, so the cost of a recompute is not known, nor
// which blocks an operator used at the peak.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "formats/memory_snapshot.h"
#include "scenarios/hardware.h"
#include "sim/peak/snapshot_peak.h"
#include "sim/peak/stack_words.h"

namespace ferry::cli {

struct SnapshotOwner {
  peak::StackWords words{};
  bool old = false;             // its blocks are from before the history, and have no stack
  bool failed = false;          // the request that failed; it has no block
  std::int64_t size_bytes = 0;  // of each block, if no block has a stack; else 0
  std::int64_t bytes = 0;
  std::uint64_t blocks = 0;
};

struct ExplainedSnapshot {
  std::string file;
  Hardware card;
  std::vector<peak::Moment> others{};  // of the other devices
  peak::Moment moment{};
  std::optional<peak::Steps> steps{};
  std::vector<SnapshotOwner> owners{};  // largest first
  bool any_stack = false;               // some block has a stack that Ferry understands
};

// `device` is the one to explain; without it, the device with the largest peak is taken. Throws
// InputError if the snapshot has no memory of a device, or not of this one.
ExplainedSnapshot explained(const std::string& file, const MemorySnapshot& snapshot,
                            const Hardware& card, std::optional<std::uint32_t> device);

std::string to_text(const ExplainedSnapshot& explained);
nlohmann::ordered_json to_json(const ExplainedSnapshot& explained);

}  // namespace ferry::cli
