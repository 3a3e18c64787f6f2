// Lets the user stop a search or a simulation (Ctrl-C), by an exception. The planner's functions
// test `stop` between simulations; StopsRun also ends a simulation that runs.
#pragma once

#include <functional>
#include <utility>

#include "formats/stream_op.h"

namespace ferry::plan {

// Thrown when `stop` returned true. It is no error: the entries (planner.h, pareto.h,
// pipeline_planner.h) catch it and return what is ready, with `stopped` set.
struct Stopped {};

// An empty function never stops. It is called on the threads that simulate.
using Stop = std::function<bool()>;

inline void throw_if(const Stop& stop) {
  if (stop && stop()) throw Stopped();
}

// Ends its simulation at the next kernel. Other operations may come from destructors, which must
// not throw.
class StopsRun final : public StreamOpConsumer {
 public:
  explicit StopsRun(Stop stop) : stop_(std::move(stop)) {}
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kKernel) throw_if(stop_);
  }

 private:
  Stop stop_;
};

}  // namespace ferry::plan
