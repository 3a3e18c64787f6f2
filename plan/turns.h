// Lower bounds on time and memory at each kernel of a step; they hold for every plan. The bound
// over all plans (lower_bound.h) and those of single candidates (floors.h) are built on them. Entry
// k of a vector describes the moment when the host issues kernel k. docs/explanation/lower-bound.md
// calls this moment turn k, and proves what is said here.
//
//     the kernels before k             kernel k, and the kernels after it
//     k cannot begin before `begins`   all of them still run: `rest`
//
// Some bytes of a storage that the forward made may be absent at some kernels: if only saved
// tensors refer to the storage, a plan may drop it between two kernels that read it.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/keep_trace.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

// At the kernels [begin, end), `bytes` bytes of a storage may be absent.
struct Absence {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::int64_t bytes = 0;
};

struct Turns {
  // The trace must not fail, and the program must be within the proof (outside_proof).
  Turns(const KeepTrace& trace, const Hardware& hardware);

  std::vector<sim::Time> begins;               // no plan begins the kernel earlier
  std::vector<sim::Time> rest;                 // the time of the kernel and of all after it
  std::vector<std::int64_t> needed;            // bytes that every plan has in memory
  std::vector<std::vector<Absence>> absences;  // by storage of the trace
  sim::Time compute_ns = 0;                    // the end of the last kernel if memory is sufficient

 private:
  void schedule(const KeepTrace& trace, sim::Time launch_ns);
  void add(const KeepTrace& trace, std::size_t number);
  void add_saved(const TracedStorage& storage, std::uint32_t from, std::vector<Absence>& absent);
};

}  // namespace ferry::plan
