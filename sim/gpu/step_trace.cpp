#include "sim/gpu/step_trace.h"

#include <utility>

namespace ferry::sim {
namespace {

std::string_view category(OpKind kind) { return kind == OpKind::kKernel ? "kernel" : "gpu_memcpy"; }

}  // namespace

StepTrace::Stream& StepTrace::of(StreamId stream) {
  const auto number = static_cast<std::size_t>(stream);
  if (streams_.size() <= number) streams_.resize(number + 1);
  return streams_[number];
}

void StepTrace::add_stream(StreamId stream, std::uint32_t device, std::string_view name) {
  of(stream).device = device;
  file_.name_stream(device, static_cast<std::uint32_t>(stream), name);
}

void StepTrace::given(StreamId stream, std::string_view name, std::int64_t bytes,
                      std::uint64_t host) {
  of(stream).given.push_back({std::string(name), bytes, host});
  write(of(stream));
}

void StepTrace::completed(const CompletedOp& op) {
  if (op.kind == OpKind::kRecord || op.kind == OpKind::kWait) return;
  of(op.stream).completed.push_back(op);
  write(of(op.stream));
}

void StepTrace::write(Stream& stream) {
  while (!stream.given.empty() && !stream.completed.empty()) {
    const Given given = std::move(stream.given.front());
    const CompletedOp op = stream.completed.front();
    stream.given.pop_front();
    stream.completed.pop_front();
    KinetoSpan span{.device = stream.device,
                    .stream = static_cast<std::uint32_t>(op.stream),
                    .category = category(op.kind),
                    .name = given.name,
                    .start_ns = op.start,
                    .end_ns = op.end,
                    .bytes = given.bytes};
    file_.write(span);
    span.name = {};
    if (op.kind == OpKind::kDeviceToHost) out_[given.host] = {span, ++flows_};
    if (op.kind != OpKind::kHostToDevice) continue;
    const auto out = out_.find(given.host);
    if (out == out_.end()) continue;
    file_.write_flow(out->second.flow, out->second.span, span);
    out_.erase(out);
  }
}

void StepTrace::allocated(std::uint32_t device, Time at, std::int64_t change) {
  allocated_[device] += change;
  file_.write_memory(device, at, allocated_[device]);
}

}  // namespace ferry::sim
