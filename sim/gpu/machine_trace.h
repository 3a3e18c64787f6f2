// A machine's run as a trace file: what its engine completes, and what the operations are called.
#pragma once

#include <vector>

#include "formats/stream_op.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/step_trace.h"

namespace ferry::sim {

class MachineTrace final : public StreamOpConsumer {
 public:
  // Both must outlive it. The machine has issued nothing yet.
  MachineTrace(Machine& machine, StepTrace& trace);
  void operator()(const StreamOp& op) override;

 private:
  void meet(StreamId stream);

  const Machine& machine_;
  StepTrace& trace_;
  std::vector<bool> met_;  // by stream
};

}  // namespace ferry::sim
