// Lines to operations, operations to the checkers, hazards to words.
#include "sim/check/trace_check.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "formats/error.h"
#include "formats/trace.h"
#include "sim/check/advice.h"
#include "sim/check/happens_before.h"
#include "sim/check/lifetime.h"
#include "sim/check/liveness.h"

namespace ferry::check {
namespace {

// A hazard's accesses and edge, as the log names them.
class Words final : public AccessNames {
 public:
  Words(const TraceReader& names, const Hazard& hazard) : names_(names), h_(hazard) {}

  std::string message() const {
    const std::string what(name(h_.kind));
    const std::string later = access(h_.later), earlier = access(h_.earlier);
    switch (h_.kind) {
      case HazardKind::kLeak:
        return what + ": " + buffer() + " is still allocated at the end, by " + earlier;
      case HazardKind::kDestroyedStream:
        return what + ": " + later + ", after " + earlier;
      case HazardKind::kOutside:
        return what + ": " + later + " touches " + to_string(h_.range) +
               ", beside the allocation by " + earlier;
      case HazardKind::kReuse:
        return what + " of " + buffer() + ": " + later +
               " uses the bytes again, not ordered after " + earlier +
               ", which used them before they were freed";
      case HazardKind::kDeadlock:
        return what + ": " + earlier + " waits for a token that " + never();
      default:
        if (!is_race(h_.kind))
          return what + " of " + buffer() + ": " + later + ", after " + earlier;
        return what + " of " + buffer() + ": " + later + " is not ordered after " + earlier;
    }
  }

  std::string fix() const { return advice(h_, *this); }

  // (advice.h)
  std::string op(const HazardAccess& access) const override { return "line " + line(access); }
  std::string place(const HazardAccess& access) const override {
    if (!access.by_host) return "stream \"" + names_.text(access.stream) + "\"";
    const std::string& thread = names_.text(access.thread);
    return thread.empty() ? "the host" : "host thread \"" + thread + "\"";
  }
  static std::string line(const HazardAccess& access) { return std::to_string(access.op); }

 private:
  std::string access(const HazardAccess& access) const {
    std::string what = access.name.empty() ? std::string(name(access.kind)) : access.name;
    return what + " on " + place(access) + " (line " + line(access) + ")";
  }
  // Why a token may never be released: `earlier` waits for it, `later` releases it, or nobody does.
  std::string never() const {
    if (h_.later.op == h_.earlier.op) return "nobody releases";
    const std::string behind = " only after a host function that may be behind this one";
    return access(h_.later) + " releases" + behind;
  }
  std::string buffer() const {
    const std::string named = names_.text(h_.buffer);
    return named.empty() ? to_string(h_.range) : "\"" + named + "\"";
  }

  const TraceReader& names_;
  const Hazard& h_;
};

TraceViolation describe(const TraceReader& names, const Hazard& hazard) {
  const auto stream = [&](const HazardAccess& access) {
    return access.by_host ? std::string() : names.text(access.stream);
  };
  // A token may have been released before somebody waited for it.
  const bool in_order = hazard.earlier.op <= hazard.later.op;
  const HazardAccess& earlier = in_order ? hazard.earlier : hazard.later;
  const HazardAccess& later = in_order ? hazard.later : hazard.earlier;
  const bool unreleased = hazard.kind == HazardKind::kDeadlock && earlier.op == later.op;
  const bool alone = hazard.kind == HazardKind::kLeak || unreleased;
  const Words words(names, hazard);
  TraceViolation v;
  v.kind = hazard.kind;
  v.buffer = names.text(hazard.buffer);
  v.range = hazard.buffer;
  v.line = later.op;
  v.previous_line = alone ? 0 : earlier.op;
  v.count = hazard.count;
  v.by_host = later.by_host;
  v.previous_by_host = earlier.by_host;
  v.stream = stream(later);
  v.previous_stream = stream(earlier);
  v.message = words.message();
  v.fix = words.fix();
  return v;
}

class TraceCheck {
 public:
  explicit TraceCheck(std::string file) : reader_(std::move(file)) {}

  void operator()(std::string_view text, std::uint64_t line) {
    StreamOp op;
    if (!reader_.read(text, line, op)) return;
    happens_before_.number_next(line);
    lifetime_.number_next(line);
    liveness_.before(op);
    happens_before_(op);
    liveness_.after(op, line);
    lifetime_(op);
    if (remembered() > many_) forget();
  }

  std::vector<TraceViolation> finish(bool leaks) {
    if (leaks) lifetime_.finish();
    liveness_.finish();
    std::vector<TraceViolation> found;
    for (const auto* hazards :
         {&happens_before_.hazards(), &lifetime_.hazards(), &liveness_.hazards()}) {
      for (const Hazard& hazard : *hazards) found.push_back(describe(reader_, hazard));
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.line, a.previous_line, a.kind, a.range.address) <
             std::tuple(b.line, b.previous_line, b.kind, b.range.address);
    });
    return found;
  }

 private:
  std::size_t remembered() const { return reader_.events_and_tokens() + liveness_.remembers(); }

  void forget() {
    happens_before_.settle();
    liveness_.settle();
    reader_.forget_events_if([&](EventId event) {
      const bool settled = happens_before_.settled(event);
      if (settled) happens_before_.destroy_event(event);
      return settled;
    });
    reader_.forget_tokens_if([&](HostToken token) {
      if (!happens_before_.settled(token) || liveness_.waits_for(token)) return false;
      happens_before_.forget(token);
      liveness_.forget(token);
      return true;
    });
    many_ = std::max(kMany, remembered() * 2);
  }

  static constexpr std::size_t kMany = 4096;
  TraceReader reader_;
  HappensBefore happens_before_{{.host_free_waits = true, .foreign = true}};
  Liveness liveness_{happens_before_.clocks()};
  Lifetime lifetime_{{.allow_outside = true, .report_overrun = true}};
  std::size_t many_ = kMany;
};

}  // namespace

TraceReport check_trace(LineSource& lines, bool leaks) {
  TraceCheck check(lines.file());
  TraceReport report;
  try {
    std::string_view text;
    while (lines.next(text)) check(text, lines.number());
  } catch (const std::length_error& error) {
    throw InputError(lines.file(), lines.number(), error.what());
  }
  report.lines = lines.number();
  report.violations = check.finish(leaks);
  return report;
}

}  // namespace ferry::check
