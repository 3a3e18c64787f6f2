#include "sim/gpu/machine_trace.h"

#include "sim/check/hazard.h"
#include "sim/gpu/stream_log.h"

namespace ferry::sim {

MachineTrace::MachineTrace(Machine& machine, StepTrace& trace) : machine_(machine), trace_(trace) {
  machine.trace_to(&trace);
  for (std::uint32_t device = 0; device < machine.devices(); ++device) {
    trace.name_device(device, "simulated");
  }
}

void MachineTrace::meet(StreamId stream) {
  const auto number = static_cast<std::size_t>(stream);
  if (met_.size() <= number) met_.resize(number + 1);
  if (met_[number]) return;
  met_[number] = true;
  trace_.add_stream(stream, machine_.device_of(stream), stream_name(stream));
}

void MachineTrace::operator()(const StreamOp& op) {
  switch (op.kind) {
    case StreamOpKind::kKernel:
      meet(op.stream);
      trace_.given(op.stream, op.name);
      return;
    case StreamOpKind::kCopy: {
      meet(op.stream);
      const Range& host = op.copy == CopyKind::kDeviceToHost ? op.writes[0] : op.reads[0];
      trace_.given(op.stream, op.name, static_cast<std::int64_t>(op.reads[0].bytes), host.address);
      return;
    }
    case StreamOpKind::kAlloc:
    case StreamOpKind::kFree: {
      if (check::is_host(op.range.address)) return;
      const auto bytes = static_cast<std::int64_t>(op.range.bytes);
      trace_.allocated(machine_.device_of(op.stream), machine_.host_now(),
                       op.kind == StreamOpKind::kAlloc ? bytes : -bytes);
      return;
    }
    default:
      return;
  }
}

}  // namespace ferry::sim
