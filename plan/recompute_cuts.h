// What it costs at least that bytes are absent at a turn (turns.h), where what runs again needs
// something to read: an op's inputs must be in memory at the turn, or be copied by then, or run
// again as well, and so on. docs/lower-bound.md proves it.
//
// Say that a byte in memory or copied costs a price. Then the least of all choices is a minimum
// cut: a storage is before the cut if it is read after the turn, an op if it runs again.
//
//     read later             price * bytes            time
//     source ----> storage ----------------> maker --------> sink
//                     ^                        |
//                     +--- of what it reads ---+
//
// Less what the room is worth at that price, the cut is a lower bound whatever the price. The
// highest is where the room is just used. A byte costs no more than the link takes for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/keep_trace.h"
#include "plan/min_cut.h"
#include "plan/turns.h"

namespace ferry::plan {

// What ops of the forward read, of what the forward made.
class RecomputeInputs {
 public:
  struct Made {
    std::uint32_t maker = 0;
    std::uint32_t named = 0;           // up to that turn a name in the code keeps it
    std::int64_t least_read = 0;       // bytes that any op which reads it reads
    std::vector<std::uint32_t> later;  // backward's kernels that use it
    std::vector<Absence> absences;
  };

  // The trace must not fail, and the turns be its.
  RecomputeInputs(const KeepTrace& trace, const Turns& turns);

  const std::vector<Made>& made() const { return made_; }
  const std::vector<std::uint32_t>& reads(std::uint32_t kernel) const { return reads_[kernel]; }
  sim::Time ns(std::uint32_t kernel) const { return ns_[kernel]; }

 private:
  std::vector<Made> made_;                         // what the forward made
  std::vector<std::vector<std::uint32_t>> reads_;  // of them, by kernel
  std::vector<sim::Time> ns_;                      // by kernel
};

class RecomputeCut {
 public:
  RecomputeCut(const RecomputeInputs& inputs, std::uint32_t turn, std::int64_t link_bytes_per_us);

  // Of what may be absent, or is read by what runs again, at most so many bytes are in memory or
  // copied: the least time of what runs again, and of waits for more copies.
  sim::Time least_ns(std::int64_t room);

 private:
  struct Cut {
    MinCut::Capacity value = 0;  // in parts of a ns
    std::int64_t bytes = 0;      // in memory or copied
    sim::Time ns = 0;            // of what runs again
  };
  struct Edge {
    std::size_t number = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::int64_t bytes = 0;
    sim::Time ns = 0;
  };

  void add(std::uint32_t from, std::uint32_t to, std::int64_t bytes, sim::Time ns);
  Cut at(std::int64_t price);

  const std::int64_t link_bytes_per_us_;
  MinCut graph_;
  std::vector<Edge> edges_;  // those that may be cut
};

}  // namespace ferry::plan
