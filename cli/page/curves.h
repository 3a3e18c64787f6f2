// Long records made short enough to draw, without losing what matters: a step is cut into slices of
// equal length, and each slice is told exactly.
//
// Of memory a slice has the moment with the most allocated bytes, so every peak is there. Of an
// engine it has how long it worked, and how long it was idle for each reason: these add up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/gpu/run_record.h"

namespace ferry::cli {

// Slice i is [i * slice_ns, (i + 1) * slice_ns); the last one ends with the step.
struct Slices {
  std::size_t count = 0;
  sim::Time slice_ns = 1;
  sim::Time step_ns = 0;

  std::size_t of(sim::Time at) const;
  sim::Time begin(std::size_t slice) const;
  sim::Time end(std::size_t slice) const;
};
// At most `most` slices, each of at least a nanosecond.
Slices slices(sim::Time step_ns, std::size_t most);

struct MemoryMoment {
  sim::Time at = 0;
  sim::KindBytes kinds;
  std::int64_t reserved_bytes = 0;  // the most in the slice
};
// One for each slice.
std::vector<MemoryMoment> memory_curve(const sim::RunRecord& record, const Slices& slices);

struct LaneSlice {
  sim::Time busy_ns = 0;
  std::array<sim::Time, sim::kIdles> idle_ns{};
  std::size_t begun = 0;               // work that began in it
  std::optional<std::size_t> longest;  // the work that took most of it
};
std::vector<LaneSlice> lane_curve(const sim::RunRecord& record, sim::OpKind kind,
                                  const std::vector<sim::IdlePart>& idle, const Slices& slices);
// Of the host: launches are its work.
std::vector<LaneSlice> host_curve(const sim::RunRecord& record,
                                  const std::vector<sim::IdlePart>& idle, const Slices& slices);

}  // namespace ferry::cli
