// A lower bound on the cost of absent bytes at one kernel (turns.h) that respects inputs: a
// recomputed operator's inputs must be in memory at that kernel, or copied by then, or recomputed
// as well, and so on. docs/explanation/lower-bound.md proves it.
//
// Give each byte that is in memory or copied the same price. Then the cheapest choice is a minimum
// cut. A storage is on the source's side if it is needed after the kernel, an operator if it is
// recomputed.
//
//     read later             price * bytes            time
//     source ----> storage ----------------> maker --------> sink
//                     ^                        |
//                     +--- what it reads ------+
//
// The cut minus (price * room) is a lower bound for every price (Lagrangian relaxation). The
// highest bound is at the price where the cut just uses the room. A price is at most the link's
// time for a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/keep_trace.h"
#include "plan/min_cut.h"
#include "plan/turns.h"

namespace ferry::plan {

// The storages that the forward made, and which operators of the forward read them.
class RecomputeInputs {
 public:
  struct Made {
    std::uint32_t maker = 0;
    std::uint32_t named = 0;           // a name in the code keeps it up to this kernel
    std::int64_t least_read = 0;       // the fewest bytes that one operator reads of it
    std::vector<std::uint32_t> later;  // kernels of backward that use it
    std::vector<Absence> absences;
  };

  // `trace.fails` must be false; `turns` are those of the trace.
  RecomputeInputs(const KeepTrace& trace, const Turns& turns);

  const std::vector<Made>& made() const { return made_; }
  const std::vector<std::uint32_t>& reads(std::uint32_t kernel) const { return reads_[kernel]; }
  sim::Time ns(std::uint32_t kernel) const { return ns_[kernel]; }

 private:
  std::vector<Made> made_;
  std::vector<std::vector<std::uint32_t>> reads_;  // indices of made_, by kernel
  std::vector<sim::Time> ns_;                      // by kernel
};

class RecomputeCut {
 public:
  RecomputeCut(const RecomputeInputs& inputs, std::uint32_t turn, std::int64_t link_bytes_per_us);

  // Returns the least time of recomputes, and of waits for more copies, if at most `room` bytes are
  // in memory or copied by then. It counts bytes that may be absent and inputs of recomputes.
  sim::Time least_ns(std::int64_t room);

 private:
  struct Cut {
    MinCut::Capacity value = 0;  // in ns * kParts * the link's rate
    std::int64_t bytes = 0;      // in memory or copied
    sim::Time ns = 0;            // time of recomputes
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
  std::vector<Edge> edges_;  // the edges that may be cut
};

}  // namespace ferry::plan
