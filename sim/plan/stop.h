// A run that its user may stop, by an exception.
#pragma once

#include <functional>
#include <utility>

#include "formats/stream_op.h"

namespace ferry::plan {

// Thrown where `stop` said so. It is no error, and nobody but who asked catches it.
struct Stopped {};

// Never stops where there is no function. It is asked on the threads that simulate.
using Stop = std::function<bool()>;

inline void throw_if(const Stop& stop) {
  if (stop && stop()) throw Stopped();
}

// Among a run's consumers, it ends the run at a kernel: other operations may be a destructor's,
// from which nothing is thrown.
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
