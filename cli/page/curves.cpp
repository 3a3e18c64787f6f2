#include "cli/page/curves.h"

#include <algorithm>

namespace ferry::cli {
namespace {

using sim::Time;

// Calls `add(slice, ns)` with the part of [from, to) in each slice.
template <class Add>
void share(const Slices& slices, Time from, Time to, const Add& add) {
  to = std::min(to, slices.step_ns);
  while (from < to) {
    const std::size_t slice = slices.of(from);
    const Time end = std::min(to, slices.end(slice));
    add(slice, end - from);
    from = end;
  }
}

// Collects the slices of an engine. Pieces of work are added in order of time.
class LaneCurve {
 public:
  explicit LaneCurve(const Slices& slices)
      : slices_(slices), curve_(slices.count), longest_ns_(slices.count) {}

  void add(Time from, Time to, std::size_t work) {
    if (from < slices_.step_ns) ++curve_[slices_.of(from)].begun;
    share(slices_, from, to, [&](std::size_t slice, Time ns) {
      curve_[slice].busy_ns += ns;
      if (ns <= longest_ns_[slice]) return;
      longest_ns_[slice] = ns;
      curve_[slice].longest = work;
    });
  }
  std::vector<LaneSlice> with(const std::vector<sim::IdlePart>& idle) {
    for (const sim::IdlePart& part : idle) {
      share(slices_, part.start, part.end, [&](std::size_t slice, Time ns) {
        curve_[slice].idle_ns[static_cast<std::size_t>(part.why)] += ns;
      });
    }
    return std::move(curve_);
  }

 private:
  const Slices& slices_;
  std::vector<LaneSlice> curve_;
  std::vector<Time> longest_ns_;
};

}  // namespace

std::size_t Slices::of(Time at) const {
  return std::min(static_cast<std::size_t>(at / slice_ns), count - 1);
}

Time Slices::begin(std::size_t slice) const { return static_cast<Time>(slice) * slice_ns; }

Time Slices::end(std::size_t slice) const {
  return slice + 1 == count ? step_ns : begin(slice + 1);
}

Slices slices(Time step_ns, std::size_t most) {
  const Time step = std::max<Time>(step_ns, 1);
  const auto parts = static_cast<Time>(std::max<std::size_t>(most, 1));
  const Time slice_ns = (step + parts - 1) / parts;
  return {static_cast<std::size_t>((step + slice_ns - 1) / slice_ns), slice_ns, step};
}

std::vector<MemoryMoment> memory_curve(const sim::RunRecord& record, const Slices& slices) {
  const std::vector<Time> times = sim::memory_times(record);
  std::vector<MemoryMoment> curve;
  MemoryMoment now;
  std::size_t i = 0;
  const auto next = [&] {
    const sim::RecordedMemory& change = record.memory[i];
    const bool freed = change.change == sim::MemoryChange::kFreed;
    now.kinds[change.kind] += freed ? -change.bytes : change.bytes;
    if (change.change == sim::MemoryChange::kOfOtherKind) now.kinds[change.before] -= change.bytes;
    now.reserved_bytes = change.reserved_bytes;
    now.at = times[i++];
    return change.change == sim::MemoryChange::kAllocated;
  };
  while (i < record.found) next();
  for (std::size_t slice = 0; slice < slices.count; ++slice) {
    now.at = slices.begin(slice);
    MemoryMoment most = now;
    while (i < times.size() && slices.of(times[i]) == slice) {
      const bool allocated = next();
      const std::int64_t reserved = std::max(most.reserved_bytes, now.reserved_bytes);
      if (allocated && now.kinds.sum() >= most.kinds.sum()) most = now;
      most.reserved_bytes = reserved;
    }
    curve.push_back(most);
  }
  return curve;
}

std::vector<LaneSlice> lane_curve(const sim::RunRecord& record, sim::OpKind kind,
                                  const std::vector<sim::IdlePart>& idle, const Slices& slices) {
  LaneCurve curve(slices);
  for (std::size_t i = 0; i < record.work.size(); ++i) {
    const sim::RecordedWork& work = record.work[i];
    if (work.kind == kind) curve.add(work.start, work.end, i);
  }
  return curve.with(idle);
}

std::vector<LaneSlice> host_curve(const sim::RunRecord& record,
                                  const std::vector<sim::IdlePart>& idle, const Slices& slices) {
  LaneCurve curve(slices);
  Time free = 0;
  for (std::size_t i = 0; i < record.work.size(); ++i) {
    const Time issued = std::max(record.work[i].issued, free);
    free = issued + record.launch_ns;
    curve.add(issued, free, i);
  }
  return curve.with(idle);
}

}  // namespace ferry::cli
