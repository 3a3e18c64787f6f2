// Writes a machine's run to a trace file, for `ferry simulate --trace`. The times come from its
// engine, the names from its operations.
#pragma once

#include <vector>

#include "formats/stream_op.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/step_trace.h"

namespace ferry::sim {

class MachineTrace final : public StreamOpConsumer {
 public:
  // `machine` and `trace` must outlive this object. The machine must not have issued anything yet.
  MachineTrace(Machine& machine, StepTrace& trace);
  void operator()(const StreamOp& op) override;

 private:
  void meet(StreamId stream);

  const Machine& machine_;
  StepTrace& trace_;
  std::vector<bool> met_;  // by stream
};

}  // namespace ferry::sim
