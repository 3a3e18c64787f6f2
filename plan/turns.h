// The turns of a step: kernel by kernel, when the host issues it, what is in memory in every plan.
// Bounds are built on it: of all plans (lower_bound.h), and of one before it is simulated
// (floors.h). docs/lower-bound.md has the words and proves what is said here.
//
//     kernels before the turn            the turn, and the kernels after it
//     no plan begins it before `begins`  all of them still run: `rest`
//
// Of each storage that the forward made some bytes may be absent at some turns: those that only
// saved tensors lead to, between two that read them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/keep_trace.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

// At the turns [begin, end) so many bytes of a storage may be absent.
struct Absence {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::int64_t bytes = 0;
};

struct Turns {
  // The trace must not fail, and the program must be within the proof (outside_proof).
  Turns(const KeepTrace& trace, const Hardware& hardware);

  std::vector<sim::Time> begins;
  std::vector<sim::Time> rest;
  std::vector<std::int64_t> needed;            // bytes in every plan
  std::vector<std::vector<Absence>> absences;  // by storage of the trace
  sim::Time compute_ns = 0;                    // the end of the last kernel, with memory enough

 private:
  void schedule(const KeepTrace& trace, sim::Time launch_ns);
  void add(const KeepTrace& trace, std::size_t number);
  void add_saved(const TracedStorage& storage, std::uint32_t from, std::vector<Absence>& absent);
};

}  // namespace ferry::plan
