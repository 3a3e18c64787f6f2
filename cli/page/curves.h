// Makes long records short enough to draw without losing peaks or times. A step is cut into slices
// of equal length.
//
// For memory, a slice has the moment with the most allocated bytes, so no peak is lost. For an
// engine, it has the time that the engine worked and the idle time for each reason. Working and
// idle times add up to the slice.
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
// Cuts a step into at most `most` slices, each of at least a nanosecond.
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
  std::size_t begun = 0;               // pieces of work that began in the slice
  std::optional<std::size_t> longest;  // the work that took most of the slice
};
std::vector<LaneSlice> lane_curve(const sim::RunRecord& record, sim::OpKind kind,
                                  const std::vector<sim::IdlePart>& idle, const Slices& slices);
// Returns the same for the host, whose work is to launch kernels and copies.
std::vector<LaneSlice> host_curve(const sim::RunRecord& record,
                                  const std::vector<sim::IdlePart>& idle, const Slices& slices);

}  // namespace ferry::cli
