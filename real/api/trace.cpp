#include "real/api/trace.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "formats/atomic_file.h"
#include "real/autograd/slots.h"

namespace ferry::real {
namespace {

constexpr int kProcess = 0;
constexpr std::uint64_t kLaneThreads = 1'000'000;  // beyond RecordFunction's thread numbers

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

void end(const at::RecordFunction& op, at::ObserverContext* context) {
  const auto* const slot =
      static_cast<const TraceSlot*>(c10::ThreadLocalDebugInfo::get(kTraceSlot));
  if (!slot || !context) return;
  slot->trace->add(Trace::Op{op.name(), at::RecordFunction::currentThreadId(),
                             static_cast<const Begun*>(context)->ns, now_ns()});
}

nlohmann::json span(std::string_view name, std::uint64_t thread, std::int64_t begin_ns,
                    std::int64_t end_ns) {
  return {{"ph", "X"},
          {"name", name},
          {"pid", kProcess},
          {"tid", thread},
          {"ts", static_cast<double>(begin_ns) / 1000},
          {"dur", static_cast<double>(end_ns - begin_ns) / 1000}};
}

nlohmann::json thread_name(std::uint64_t thread, std::string_view name) {
  return {{"ph", "M"},
          {"name", "thread_name"},
          {"pid", kProcess},
          {"tid", thread},
          {"args", {{"name", name}}}};
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

void Trace::write(const std::filesystem::path& path) const {
  AtomicFile file(path);
  file.write("{\"traceEvents\":[\n");
  file.write(thread_name(kLaneThreads, "to the host").dump() + ",\n");
  file.write(thread_name(kLaneThreads + 1, "from the host").dump());
  const std::lock_guard lock(mutex_);
  for (const Op& op : ops_) {
    file.write(",\n" + span(op.name, op.thread, op.begin_ns, op.end_ns).dump());
  }
  for (const Span& copy : copies_) {
    const std::uint64_t lane = copy.lane == Lane::kDeviceToHost ? 0 : 1;
    auto event = span(name(copy.step), kLaneThreads + lane, copy.begin_ns, copy.end_ns);
    event["args"] = {{"bytes", copy.bytes}};
    file.write(",\n" + event.dump());
  }
  file.write("\n]}\n");
  file.commit();
}

OpTraceScope::OpTraceScope(std::shared_ptr<Trace> trace)
    : slot_(kTraceSlot, std::make_shared<TraceSlot>(std::move(trace))),
      callback_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(begin, end)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}

OpTraceScope::~OpTraceScope() { at::removeCallback(callback_); }

}  // namespace ferry::real
