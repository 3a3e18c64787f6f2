// Implements the part of happens_before.h that forgets accesses. The log of a program may be long,
// and memory should grow only with its live resources and with what some host thread has not waited
// for (log_check.h). Only what no later report can need is forgotten; clocks.h says what is
// settled.
//
// Also counts the accesses that are still remembered, and finds the host threads that keep them
// from being forgotten, for the report of a log.
#include <algorithm>
#include <map>
#include <utility>

#include "sim/check/happens_before.h"

namespace ferry::check {

bool HappensBefore::remembers(Range range) const {
  bool any = false;
  const auto see = [&any](std::uint64_t, std::uint64_t, const auto&) { any = true; };
  cells_.visit(range.address, range.end(), see);
  lives_.visit(range.address, range.end(), see);
  return any;
}

// Reads stay while the last write is not settled: they show which conflicts were reported.
void HappensBefore::forget_settled() {
  cells_.erase_if([this](std::uint64_t, std::uint64_t, Cell& c) {
    if (c.write.seq != 0 && !settled(c.write)) return false;
    c.write = Access{};
    std::erase_if(c.reads, [this](const Access& read) { return settled(read); });
    return c.reads.empty();
  });
  // A life separates the accesses before it from those after it, so it stays as long as they do.
  lives_.erase_if([this](std::uint64_t begin, std::uint64_t end, const Life& life) {
    if (!life.freed) return false;
    bool used = false;
    cells_.visit(begin, end, [&](std::uint64_t, std::uint64_t, const Cell&) { used = true; });
    return !used;
  });
}

std::uint64_t HappensBefore::accesses() const {
  std::uint64_t count = 0;
  cells_.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, std::uint64_t, const Cell& c) {
    count += c.reads.size() + (c.write.seq != 0 ? 1 : 0);
  });
  return count;
}

std::vector<HappensBefore::Pin> HappensBefore::pins() const {
  std::map<std::pair<Actor, Actor>, std::uint64_t> counts;  // by thread and actor
  const auto see = [&](const Access& access) {
    if (access.seq == 0) return;
    Actor to_blame = Clocks::kNobody;
    for (const Actor thread : clocks_.threads()) {
      if (clocks_.clock(thread)[access.actor] >= access.seq) continue;
      if (to_blame != Clocks::kNobody) return;  // two threads have not waited
      to_blame = thread;
    }
    if (to_blame != Clocks::kNobody) ++counts[{to_blame, access.actor}];
  };
  cells_.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, std::uint64_t, const Cell& c) {
    see(c.write);
    std::for_each(c.reads.begin(), c.reads.end(), see);
  });
  std::vector<Pin> pins;
  for (const auto& [key, count] : counts) {
    const auto [thread, actor] = key;
    if (pins.empty() || pins.back().thread != clocks_.thread_of(thread)) {
      pins.emplace_back().thread = clocks_.thread_of(thread);
    }
    Pin& pin = pins.back();
    pin.accesses += count;
    if (count <= pin.on_stream) continue;
    pin.on_stream = count;
    pin.by_host = clocks_.is_thread(actor);
    if (!pin.by_host) pin.stream = clocks_.stream_of(actor);
  }
  std::stable_sort(pins.begin(), pins.end(),
                   [](const Pin& a, const Pin& b) { return a.accesses > b.accesses; });
  return pins;
}

}  // namespace ferry::check
