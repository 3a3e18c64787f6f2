#include "real/api/trace.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "formats/kineto_file.h"
#include "real/autograd/slots.h"
#include "real/cpu/counting_allocator.h"

namespace ferry::real {
namespace {

// The ids of the two lanes, as streams of the device in the trace.
constexpr std::uint64_t kToHost = 1;
constexpr std::uint64_t kFromHost = 2;

struct TraceSlot final : c10::DebugInfoBase {
  explicit TraceSlot(std::shared_ptr<Trace> to) : trace(std::move(to)) {}
  std::shared_ptr<Trace> trace;
};

struct Begun final : at::ObserverContext {
  std::int64_t ns = now_ns();
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
  return std::make_unique<Begun>();
}

std::optional<Trace::Allocated> allocated_on_cuda() {
  constexpr auto kCuda = c10::DeviceType::CUDA;
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  if (!c10::impl::hasDeviceGuardImpl(kCuda)) return std::nullopt;
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(kCuda));
  if (allocator == nullptr || !allocator->initialized()) return std::nullopt;
  const c10::DeviceIndex device = c10::impl::getDeviceGuardImpl(kCuda)->getDevice().index();
  const std::int64_t bytes = allocator->getDeviceStats(device).allocated_bytes[kAll].current;
  return Trace::Allocated{static_cast<std::uint32_t>(device), now_ns(), bytes};
}

// Returns the memory of the device on which this thread computes.
std::optional<Trace::Allocated> allocated_now() {
  if (auto on_cuda = allocated_on_cuda()) return on_cuda;
  CountingAllocator& counting = CountingAllocator::instance();
  if (c10::GetCPUAllocator() != &counting) return std::nullopt;
  return Trace::Allocated{0, now_ns(), counting.live_bytes()};
}

void end(const at::RecordFunction& op, at::ObserverContext* context) {
  const auto* const slot =
      static_cast<const TraceSlot*>(c10::ThreadLocalDebugInfo::get(kTraceSlot));
  if (!slot || !context) return;
  slot->trace->add(Trace::Op{op.name(), at::RecordFunction::currentThreadId(),
                             static_cast<const Begun*>(context)->ns, now_ns()});
  if (const auto allocated = allocated_now()) slot->trace->add(*allocated);
}

KinetoSpan on_its_lane(const Span& copy) {
  return {.device = 0,
          .stream = copy.lane == Lane::kDeviceToHost ? kToHost : kFromHost,
          .category = "gpu_memcpy",
          .name = name(copy.step),
          .start_ns = copy.begin_ns,
          .end_ns = copy.end_ns,
          .bytes = copy.bytes};
}

}  // namespace

void Trace::add(const Span& copy) {
  const std::lock_guard lock(mutex_);
  copies_.push_back(copy);
}

void Trace::add(Op op) {
  const std::lock_guard lock(mutex_);
  ops_.push_back(std::move(op));
}

void Trace::add(Allocated allocated) {
  const std::lock_guard lock(mutex_);
  const auto [last, is_first] = last_allocated_.try_emplace(allocated.device, allocated.bytes);
  if (!is_first && last->second == allocated.bytes) return;
  last->second = allocated.bytes;
  allocated_.push_back(allocated);
}

void Trace::write(const std::filesystem::path& path) const {
  KinetoFile file(path);
  file.name_device(kKinetoHost, "operators");
  file.name_device(0, "copies");
  file.name_stream(0, kToHost, "to the host");
  file.name_stream(0, kFromHost, "from the host");
  const std::lock_guard lock(mutex_);
  std::set<std::uint64_t> threads;
  for (const Op& op : ops_) {
    if (threads.insert(op.thread).second) {
      file.name_stream(kKinetoHost, op.thread, "thread " + std::to_string(op.thread));
    }
    file.write({.device = kKinetoHost,
                .stream = op.thread,
                .category = "cpu_op",
                .name = op.name,
                .start_ns = op.begin_ns,
                .end_ns = op.end_ns});
  }
  for (const Allocated& each : allocated_) {
    file.write_memory(each.device, each.at_ns, each.bytes);
  }
  write_copies(file);
  file.commit();
}

// Copies were added when they were done, in the order of each lane. Bytes may come back several
// times.
void Trace::write_copies(KinetoFile& file) const {
  struct Out {
    KinetoSpan span;
    std::int64_t not_back = 0;
  };
  std::map<const void*, Out> out;  // the last copy to each place on the host
  std::uint64_t flows = 0;
  std::int64_t bytes = 0;
  for (const Span& copy : copies_) {
    const KinetoSpan span = on_its_lane(copy);
    file.write(span);
    Out& there = out[copy.host];
    bytes -= there.not_back;
    if (copy.lane == Lane::kDeviceToHost) {
      there = {span, copy.bytes};
      bytes += copy.bytes;
    } else {
      if (there.span.bytes >= 0) file.write_flow(++flows, there.span, span);
      there.not_back = 0;
    }
    file.write_memory(0, copy.end_ns, bytes, "on the host and not back yet");
  }
}

OpTraceScope::OpTraceScope(std::shared_ptr<Trace> trace)
    : slot_(kTraceSlot, std::make_shared<TraceSlot>(std::move(trace))),
      callback_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(begin, end)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}

OpTraceScope::~OpTraceScope() { at::removeCallback(callback_); }

}  // namespace ferry::real
