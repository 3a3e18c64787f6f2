#include "vgpu/time/timeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "formats/limits.h"
#include "scenarios/roofline.h"
#include "sim/run/training/hardware_model.h"

namespace ferry::vgpu {
namespace {

constexpr sim::Time kAskNs = 1000;
constexpr sim::Time kAskMostNs = 1'000'000;
constexpr StreamId kDefaultStream{0};  // the first device's, as the runtime numbers streams

}  // namespace

StreamTime StreamTime::operator-(const StreamTime& earlier) const {
  return {total_ns - earlier.total_ns, kernels_ns - earlier.kernels_ns, waits_ns - earlier.waits_ns,
          host_ns - earlier.host_ns};
}

void Timeline::Watch::completed(const sim::CompletedOp& op) {
  if (trace) trace->completed(op);
  if (op.stream != main) return;
  so_far.host_ns += worked_by_host(so_far.total_ns, op.start);
  so_far.total_ns = op.end;
  switch (op.kind) {
    case sim::OpKind::kWait:
      so_far.waits_ns += op.end - op.start;
      break;
    case sim::OpKind::kRecord:
      if (std::binary_search(step_ends.begin(), step_ends.end(), op.op)) ends.push_back(so_far);
      break;
    default:
      so_far.kernels_ns += op.end - op.start;
  }
}

// Returns how much of this interval the host worked. Drops earlier work, which no later call needs.
sim::Time Timeline::Watch::worked_by_host(sim::Time from, sim::Time to) {
  while (!works_.empty() && works_.front().second <= from) works_.pop_front();
  sim::Time sum = 0;
  for (const auto& [begin, end] : works_) {
    if (begin >= to) break;
    sum += std::min(end, to) - std::max(begin, from);
  }
  return sum;
}

Timeline::Timeline(Hardware hardware) : hardware_(std::move(hardware)) {
  engine_.trace_to(&watch_);
  engine_.keep_digest();
  watch_.main = on(kDefaultStream, 0);
}

Timeline::Device& Timeline::device(int number) {
  while (devices_.size() <= static_cast<std::size_t>(number)) {
    const sim::MachineOptions machine = sim::machine_options(hardware_);
    devices_.push_back(
        {engine_.add_device(machine.links, sim::kNoPort, machine.peer, machine.memory_bytes_per_us),
         {},
         {}});
    name_device(static_cast<std::uint32_t>(devices_.size() - 1));
  }
  return devices_[static_cast<std::size_t>(number)];
}

StreamId Timeline::on(StreamId stream, int device) {
  const auto [found, added] = streams_.try_emplace(stream);
  if (added) {
    found->second = engine_.add_stream(this->device(device).id);
    name_stream(stream, found->second, device);
  }
  return found->second;
}

void Timeline::name_stream(StreamId stream, StreamId own, int device) {
  if (!watch_.trace) return;
  const auto number = static_cast<std::uint32_t>(stream);
  const bool is_default = stream == kDefaultStream || static_cast<int>(number) == device;
  watch_.trace->add_stream(own, static_cast<std::uint32_t>(device),
                           is_default ? "default stream" : "stream " + std::to_string(number));
}

void Timeline::trace_to(const std::filesystem::path& file) {
  watch_.trace.emplace(file);
  for (std::uint32_t number = 0; number < devices_.size(); ++number) name_device(number);
  for (const auto& [stream, own] : streams_) name_stream(stream, own, 0);
}

void Timeline::write_trace() {
  if (!watch_.trace) return;
  watch_.trace->commit();
  watch_.trace.reset();  // the program may still run
}

void Timeline::name_device(std::uint32_t number) {
  if (watch_.trace) watch_.trace->name_device(number, hardware_.name);
}

void Timeline::allocated(int device, std::int64_t change) {
  if (!watch_.trace) return;
  watch_.trace->allocated(static_cast<std::uint32_t>(device), issue_time(), change);
}

// The engine's time never goes back: after a query or a wait it may be ahead of the host's.
sim::Time Timeline::issue_time() const { return std::max(host_ns_, engine_.now()); }

sim::KernelTime Timeline::time_of(const KernelCost& cost) const {
  Op op;
  op.flops = cost.flops;
  op.read_bytes = cost.bytes;
  op.kernels = cost.kernels;
  op.products = cost.products;
  op.name = cost.op;
  return {kernel_ns(op, cost.computes_in, hardware_), moving_ns(op, hardware_)};
}

void Timeline::begin_graph(StreamId stream, int device) {
  launched(on(stream, device), device);
  in_graph_ = true;
}

void Timeline::end_graph() { in_graph_ = false; }

void Timeline::launched(StreamId own, int device) {
  if (in_graph_) return;
  host_ns_ = issue_time() + hardware_.launch_ns;
  ask_ns_ = 0;
  Device& on = this->device(device);
  host_ns_ =
      std::max(host_ns_, on.queue.launched(engine_, on.computes.value_or(own), issue_time()));
}

void Timeline::issue(StreamId stream, int device, const Cost& cost, const char* name) {
  const StreamId own = on(stream, device);
  if (watch_.trace && !std::holds_alternative<std::monostate>(cost)) {
    const auto* const copy = std::get_if<CopyCost>(&cost);
    watch_.trace->given(own, name, copy != nullptr ? copy->bytes : -1,
                        copy != nullptr ? copy->host : 0);
  }
  if (const auto* kernel = std::get_if<KernelCost>(&cost)) {
    this->device(device).computes = own;
    engine_.kernel(own, time_of(*kernel), issue_time());
  } else if (const auto* sleep = std::get_if<Sleep>(&cost)) {
    engine_.kernel(own, std::clamp<sim::Time>(sleep->ns, 1, limits::kTimeNs), issue_time());
  } else if (const auto* copy = std::get_if<CopyCost>(&cost)) {
    issue_copy(own, *copy);
  } else {
    return;
  }
  launched(own, device);
  if (const auto* copy = std::get_if<CopyCost>(&cost)) host_works(aside_ns(*copy));
}

// The host's time for staging a copy of pageable memory, in nanoseconds; 0 if it is not staged.
sim::Time Timeline::aside_ns(const CopyCost& copy) const {
  const bool up = copy.kind == CopyKind::kHostToDevice;
  const Link& link = hardware_.link;
  const std::int64_t rate = up ? link.pageable_h2d : link.pageable_d2h;
  return copy.pageable && rate > 0 ? copy.bytes * 1000 / rate : 0;
}

void Timeline::host_works(sim::Time ns) {
  if (ns == 0) return;
  const sim::Time from = issue_time();
  host_ns_ = from + ns;
  watch_.host_works(from, host_ns_);
}

void Timeline::host_computes(const KernelCost& cost) {
  const HostRates& rates = hardware_.host;
  if (rates.memory_bytes_per_us == 0) return;  // the card file has no rates of a host
  host_works(std::max(cost.bytes * 1000 / rates.memory_bytes_per_us,
                      cost.flops * 1000 / rates.flops_per_us));
}

void Timeline::issue_copy(StreamId own, const CopyCost& copy) {
  switch (copy.kind) {
    case CopyKind::kDeviceToHost:
    case CopyKind::kHostToDevice:
      engine_.copy(own, copy.kind, copy.bytes, issue_time());
      return;
    case CopyKind::kPeer:
      // The engine models a copy as fetched by the receiver. A copy that the sender pushes takes as
      // long.
      engine_.peer_copy(own, device(copy.peer).id, copy.bytes, issue_time());
      return;
    case CopyKind::kDeviceToDevice:
      engine_.kernel(own, time_of({.bytes = 2 * copy.bytes}), issue_time());
      return;
  }
}

Clock::Mark Timeline::record(StreamId stream, int device) {
  return static_cast<Mark>(engine_.record(on(stream, device), issue_time()));
}

void Timeline::release(Mark mark) { engine_.release(static_cast<sim::Signal>(mark)); }

void Timeline::wait(StreamId stream, int device, Mark mark) {
  engine_.wait(on(stream, device), static_cast<sim::Signal>(mark), issue_time());
}

Clock::Answer Timeline::host_asks(Mark mark) {
  ask_ns_ = std::clamp(2 * ask_ns_, kAskNs, kAskMostNs);
  host_ns_ = issue_time() + ask_ns_;
  if (!engine_.done(static_cast<sim::Signal>(mark), host_ns_)) return Answer::kNotReady;
  ask_ns_ = 0;
  return Answer::kDone;
}

void Timeline::host_waits(StreamId stream, int device) {
  host_ns_ = std::max(issue_time(), engine_.run_until_idle(on(stream, device)));
}

void Timeline::host_waits(Mark mark) {
  host_ns_ = std::max(issue_time(), engine_.run_until(static_cast<sim::Signal>(mark)));
}

std::int64_t Timeline::duration(const Cost& cost) const {
  if (const auto* const kernel = std::get_if<KernelCost>(&cost)) return time_of(*kernel).ns;
  if (const auto* const sleep = std::get_if<Sleep>(&cost)) return sleep->ns;
  const auto* const copy = std::get_if<CopyCost>(&cost);
  return copy != nullptr ? time_of({.bytes = 2 * copy->bytes}).ns : 0;
}

std::int64_t Timeline::run_to_end(Mark mark) {
  return engine_.run_until(static_cast<sim::Signal>(mark));
}

void Timeline::end_step() {
  watch_.step_ends.push_back(engine_.submitted());
  engine_.release(engine_.record(watch_.main, issue_time()));
}

TimeSummary Timeline::summary() {
  TimeSummary summary;
  engine_.drain();
  summary.total_ns = std::max(host_ns_, engine_.makespan());
  for (std::size_t i = 1; i < watch_.ends.size(); ++i) {
    summary.steps.push_back(watch_.ends[i] - watch_.ends[i - 1]);
  }
  return summary;
}

}  // namespace ferry::vgpu
