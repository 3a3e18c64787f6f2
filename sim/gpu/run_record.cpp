#include "sim/gpu/run_record.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace ferry::sim {
namespace {

Idle why(OpKind kind) {
  switch (kind) {
    case OpKind::kDeviceToHost:
      return Idle::kCopyOut;
    case OpKind::kHostToDevice:
      return Idle::kCopyIn;
    default:
      return Idle::kOtherStream;
  }
}

// Returns the work of a kind, by start.
std::vector<std::size_t> in_order(const RunRecord& record, OpKind kind) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < record.work.size(); ++i) {
    if (record.work[i].kind == kind) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return record.work[a].start < record.work[b].start;
  });
  return order;
}

// Explains idle times. They must be given in order.
class Explains {
 public:
  explicit Explains(const RunRecord& record) : record_(record) {
    for (const RecordedWait& wait : record.waits) {
      if (wait.end > wait.start) waits_[wait.stream].push_back(&wait);
    }
    Time free = 0;  // when the host had launched the work before
    for (const RecordedWork& work : record.work) {
      if (work.issued > free) stalls_.emplace_back(free, work.issued);
      free = work.issued + record.launch_ns;
    }
  }

  // Explains [from, to), before `next`, or after the last work of `stream`.
  void explain(Time from, Time to, StreamId stream, std::optional<std::size_t> next) {
    const auto found = waits_.find(stream);
    if (found != waits_.end()) {
      std::size_t& at = next_wait_[stream];
      const auto& waits = found->second;
      while (at < waits.size() && waits[at]->end <= from) ++at;
      for (; at < waits.size() && waits[at]->start < to; ++at) {
        const RecordedWait& wait = *waits[at];
        unlaunched(from, std::max(from, wait.start), next);
        const Idle idle = wait.on ? why(record_.work[*wait.on].kind) : Idle::kEarlier;
        add({idle, std::max(from, wait.start), std::min(to, wait.end), wait.on, next});
        from = std::min(to, wait.end);
        if (wait.end > to) break;
      }
    }
    unlaunched(from, to, next);
  }
  std::vector<IdlePart> take() { return std::move(parts_); }

 private:
  // Explains time without a wait: the host had not launched the next work, or there is no more.
  void unlaunched(Time from, Time to, std::optional<std::size_t> next) {
    if (!next) return add({Idle::kNoMoreWork, from, to, std::nullopt, next});
    while (next_stall_ < stalls_.size() && stalls_[next_stall_].second <= from) ++next_stall_;
    for (std::size_t i = next_stall_; i < stalls_.size() && stalls_[i].first < to; ++i) {
      const Time begin = std::max(from, stalls_[i].first);
      const Time end = std::min(to, stalls_[i].second);
      add({Idle::kLaunch, from, begin, std::nullopt, next});
      add({Idle::kHostWaited, begin, end, std::nullopt, next});
      from = end;
    }
    add({Idle::kLaunch, from, to, std::nullopt, next});
  }
  void add(const IdlePart& part) {
    if (part.end > part.start) parts_.push_back(part);
  }

  const RunRecord& record_;
  std::map<StreamId, std::vector<const RecordedWait*>> waits_;
  std::map<StreamId, std::size_t> next_wait_;
  std::vector<std::pair<Time, Time>> stalls_;  // when the host itself waited
  std::size_t next_stall_ = 0;
  std::vector<IdlePart> parts_;
};

}  // namespace

std::vector<Time> memory_times(const RunRecord& record) {
  std::vector<Time> times(record.memory.size(), 0);
  std::size_t next = 0;  // the first kernel at or after the change's work
  Time at = 0;
  for (std::size_t i = record.found; i < record.memory.size(); ++i) {
    next = std::max(next, record.memory[i].next);
    while (next < record.work.size() && record.work[next].kind != OpKind::kKernel) ++next;
    at = std::max(at, next < record.work.size() ? record.work[next].start : record.step_ns);
    times[i] = at;
  }
  return times;
}

RecordedPeak peak_of(const RunRecord& record) {
  std::int64_t bytes = 0;
  std::int64_t most = 0;
  std::size_t peak = record.found;  // number of changes up to the peak
  for (std::size_t i = 0; i < record.memory.size(); ++i) {
    const RecordedMemory& each = record.memory[i];
    if (each.change == MemoryChange::kOfOtherKind) continue;
    bytes += each.change == MemoryChange::kAllocated ? each.bytes : -each.bytes;
    const bool counts = i + 1 >= record.found && each.change == MemoryChange::kAllocated;
    if (!counts || bytes < most) continue;
    most = bytes;
    peak = i + 1;
  }
  RecordedPeak found;
  std::map<std::pair<std::uint32_t, MemoryKind>, std::int64_t> parts;
  for (std::size_t i = 0; i < peak; ++i) {
    const RecordedMemory& each = record.memory[i];
    const bool freed = each.change == MemoryChange::kFreed;
    parts[{each.place, each.kind}] += freed ? -each.bytes : each.bytes;
    if (each.change == MemoryChange::kOfOtherKind) parts[{each.place, each.before}] -= each.bytes;
  }
  for (const auto& [what, part] : parts) {
    if (part == 0) continue;
    found.parts.push_back({what.first, what.second, part});
    found.kinds[what.second] += part;
  }
  if (peak > 0) found.at = memory_times(record)[peak - 1];
  return found;
}

std::vector<IdlePart> idle_parts(const RunRecord& record, OpKind kind) {
  Explains explains(record);
  Time free = 0;
  StreamId stream{};
  for (const std::size_t i : in_order(record, kind)) {
    const RecordedWork& work = record.work[i];
    if (work.start > free) explains.explain(free, work.start, work.stream, i);
    free = std::max(free, work.end);
    stream = work.stream;
  }
  if (free < record.step_ns) explains.explain(free, record.step_ns, stream, std::nullopt);
  return explains.take();
}

std::vector<IdlePart> host_idle_parts(const RunRecord& record) {
  std::vector<IdlePart> parts;
  Time free = 0;
  for (std::size_t i = 0; i < record.work.size(); ++i) {
    const Time issued = record.work[i].issued;
    if (issued > free) parts.push_back({Idle::kHostWaited, free, issued, std::nullopt, i});
    free = std::max(free, issued + record.launch_ns);
  }
  if (free < record.step_ns) {
    parts.push_back({Idle::kNoMoreWork, free, record.step_ns, std::nullopt, std::nullopt});
  }
  return parts;
}

}  // namespace ferry::sim
