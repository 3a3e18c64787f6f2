// Implements log_check.h: turns lines into operations, gives these to the checkers, and describes
// each hazard in the names of the log.
#include "sim/check/log_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "formats/error.h"
#include "formats/stream_log.h"
#include "sim/check/advice.h"
#include "sim/check/happens_before.h"
#include "sim/check/lifetime.h"
#include "sim/check/liveness.h"
#include "sim/check/pytorch_advice.h"
#include "sim/check/views.h"

namespace ferry::check {
namespace {

// Describes a hazard's accesses, and the order that is missing, in the names of the log.
class Words final : public AccessNames {
 public:
  Words(const StreamLogReader& names, const Hazard& hazard) : names_(names), h_(hazard) {}

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

  std::string fix() const {
    const std::string calls = pytorch_advice(h_, *this);
    return advice(h_, *this) + (calls.empty() ? "" : "; in PyTorch: " + calls);
  }

  // These two override AccessNames (advice.h).
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
    if (what.starts_with("at ")) what = std::string(name(access.kind)) + " " + what;
    return what + " on " + place(access) + " (line " + line(access) + ")";
  }
  // Says why a token may never be released. `earlier` waits for it, and `later`, if any, releases
  // it.
  std::string never() const {
    if (h_.later.op == h_.earlier.op) return "nobody releases";
    const std::string behind = " only after a host function that may be behind this one";
    return access(h_.later) + " releases" + behind;
  }
  std::string buffer() const {
    const std::string named = names_.text(h_.buffer);
    return named.empty() ? to_string(h_.range) : "\"" + named + "\"";
  }

  const StreamLogReader& names_;
  const Hazard& h_;
};

LogViolation describe(const StreamLogReader& names, const Hazard& hazard) {
  const auto stream = [&](const HazardAccess& access) {
    return access.by_host ? std::string() : names.text(access.stream);
  };
  // A token may have been released before the wait for it.
  const bool in_order = hazard.earlier.op <= hazard.later.op;
  const HazardAccess& earlier = in_order ? hazard.earlier : hazard.later;
  const HazardAccess& later = in_order ? hazard.later : hazard.earlier;
  const bool unreleased = hazard.kind == HazardKind::kDeadlock && earlier.op == later.op;
  const bool alone = hazard.kind == HazardKind::kLeak || unreleased;
  const Words words(names, hazard);
  LogViolation v;
  v.kind = hazard.kind;
  v.buffer = names.text(hazard.buffer);
  if (v.buffer.empty()) v.range = hazard.buffer;  // a named buffer has no meaningful address
  v.line = later.op;
  v.previous_line = alone ? 0 : earlier.op;
  v.count = hazard.count;
  v.by_host = later.by_host;
  v.previous_by_host = earlier.by_host;
  v.stream = stream(later);
  v.previous_stream = stream(earlier);
  v.operation = later.name.empty() ? std::string(name(later.kind)) : later.name;
  if (!alone) {
    v.previous_operation = earlier.name.empty() ? std::string(name(earlier.kind)) : earlier.name;
  }
  v.message = words.message();
  v.fix = words.fix();
  return v;
}

constexpr std::size_t kHazardsMost = 10'000;

class LogCheck {
 public:
  LogCheck(std::string file, const LogOptions& options)
      : reader_(std::move(file)), options_(options), many_(options.many) {}

  void operator()(std::string_view text, std::uint64_t line) {
    StreamOp op;
    if (!reader_.read(text, line, op)) return;
    if (options_.also) (*options_.also)(op);
    happens_before_.number_next(line);
    lifetime_.number_next(line);
    count(op);
    if (op.captured) {  // it runs at the replays
      lifetime_(op);
      return describe_new();
    }
    // A token that was released may be forgotten. A later wait for it does not block, so liveness
    // sees it as an ordinary host function.
    const StreamOpKind kind = op.kind;
    const bool was_released = kind == StreamOpKind::kAcquire && op.in_stream &&
                              !liveness_.knows_release_of(op.token) &&
                              released_.contains(Distinct::hash_of(reader_.text(op.token)));
    liveness_.before(op);
    // The pool of a block waits for its recorded uses. A named buffer has no pool, so a record_use
    // of it orders nothing.
    if (op.kind != StreamOpKind::kRecordUse || op.range.address < kNamedBuffers) {
      happens_before_(op);
    }
    if (was_released) op.kind = StreamOpKind::kHostFunc;
    liveness_.after(op, line);
    op.kind = kind;
    lifetime_(op);
    view(op, line);
    describe_new();
    if (remembered() > many_) forget();
  }

  LogReport finish(bool stopped) {
    // If the check stopped early, later lines might free what is allocated now, or release a token.
    if (options_.leaks && !stopped) lifetime_.finish();
    if (!stopped) liveness_.finish();
    describe_new();
    LogReport report;
    report.stopped = stopped;
    for (Checker& checker : checkers_) {
      for (std::size_t i = 0; i < checker.described.size(); ++i) {
        checker.described[i].count = checker.log.hazards()[i].count;
        report.violations.push_back(std::move(checker.described[i]));
      }
      report.left_out += checker.log.left_out();
    }
    std::stable_sort(report.violations.begin(), report.violations.end(),
                     [](const LogViolation& a, const LogViolation& b) {
                       return std::tuple(a.line, a.previous_line, a.kind, a.range.address) <
                              std::tuple(b.line, b.previous_line, b.kind, b.range.address);
                     });
    report.scope = scope();
    report.views = views_.count();
    report.unjudged_views = unjudged_views_;
    for (auto& [key, each] : unjudged_) report.unjudged.push_back(std::move(each));
    std::sort(report.unjudged.begin(), report.unjudged.end(),
              [](const TraceUnjudged& a, const TraceUnjudged& b) {
                return std::tie(a.line, a.view_line) < std::tie(b.line, b.view_line);
              });
    forget();
    report.remembered = happens_before_.accesses();
    for (const HappensBefore::Pin& pin : happens_before_.pins()) {
      report.pins.push_back({reader_.text(pin.thread), pin.accesses,
                             pin.by_host ? std::string() : reader_.text(pin.stream),
                             pin.on_stream});
    }
    return report;
  }

 private:
  // Hazards are described at once, because the log's names may be forgotten later.
  struct Checker {
    HazardLog& log;
    std::vector<LogViolation> described = {};
  };

  void describe_new() {
    for (Checker& checker : checkers_) {
      const std::vector<Hazard>& hazards = checker.log.hazards();
      for (std::size_t i = checker.described.size(); i < hazards.size(); ++i) {
        checker.described.push_back(describe(reader_, hazards[i]));
      }
    }
  }

  void view(const StreamOp& op, std::uint64_t line) {
    switch (op.kind) {
      case StreamOpKind::kHostView: {
        const std::string name(op.name.empty() ? check::name(op.kind) : op.name);
        views_.begin(op.range, {line, name});
        if (const auto work = happens_before_.pending(op.range, op.thread)) {
          const std::string called(work->name.empty() ? check::name(work->kind) : work->name);
          leave_unjudged(op.range, called, work->stream, work->op);
        }
        return;
      }
      case StreamOpKind::kHostViewEnd:
        return views_.end(op.range);
      case StreamOpKind::kKernel:
      case StreamOpKind::kCopy:
      case StreamOpKind::kMemset:
      case StreamOpKind::kHostFunc: {
        if (op.host_order != HostOrder::kNone) return;
        const std::string_view called = op.name.empty() ? check::name(op.kind) : op.name;
        for (const Range& range : op.reads) leave_unjudged(range, called, op.stream, line);
        for (const Range& range : op.writes) leave_unjudged(range, called, op.stream, line);
        return;
      }
      default:
        return;
    }
  }

  // Counts the views of these bytes as unjudged, because this work is pending on them.
  void leave_unjudged(Range range, std::string_view work, StreamId stream, std::uint64_t line) {
    views_.touch(range, [&](const Views::View& view) {
      ++unjudged_views_;
      const std::pair key(view.name, std::string(work));
      if (const auto known = unjudged_.find(key); known != unjudged_.end()) {
        ++known->second.count;
      } else if (unjudged_.size() < kHazardsMost) {
        unjudged_.emplace(key, TraceUnjudged{.view_line = view.line,
                                             .view = view.name,
                                             .line = line,
                                             .operation = key.second,
                                             .message = unseen(view, key.second, stream, line)});
      }
    });
  }

  std::string unseen(const Views::View& view, const std::string& work, StreamId stream,
                     std::uint64_t line) const {
    return view.name + " (line " + std::to_string(view.line) +
           "): what the host does through this view is not seen, and " + work + " on stream \"" +
           reader_.text(stream) + "\" (line " + std::to_string(line) +
           ") may use the same bytes meanwhile";
  }

  void count(const StreamOp& op) {
    if (op.kind == StreamOpKind::kHostView || op.kind == StreamOpKind::kHostViewEnd) return;
    accesses_ += op.reads.size() + op.writes.size();
    accesses_ += op.range.bytes != 0 ? 1 : 0;
  }

  LogScope scope() const {
    const auto count_of = [](const Distinct& seen) {
      return LogScope::Count{seen.count(), seen.is_exact()};
    };
    return {.operations = reader_.operations(),
            .accesses = accesses_,
            .streams = count_of(reader_.streams()),
            .threads = count_of(reader_.threads()),
            .buffers = count_of(reader_.buffers())};
  }

  std::size_t remembered() const {
    return reader_.names() + liveness_.remembers() + happens_before_.pieces();
  }

  void forget() {
    happens_before_.settle();
    liveness_.settle();
    happens_before_.forget_settled();
    reader_.forget_events_if([&](EventId event) {
      const bool settled = happens_before_.settled(event);
      if (settled) happens_before_.destroy_event(event);
      return settled;
    });
    reader_.forget_tokens_if([&](HostToken token) {
      if (!happens_before_.settled(token) || liveness_.waits_for(token)) return false;
      if (liveness_.knows_release_of(token)) {
        released_.insert(Distinct::hash_of(reader_.text(token)));
      }
      happens_before_.forget(token);
      liveness_.forget(token);
      return true;
    });
    reader_.forget_buffers_if([&](const Range& buffer) {
      return !happens_before_.remembers(buffer) && !views_.is_of(buffer);
    });
    forget_streams();
    many_ = std::max(options_.many, remembered() * 2);
  }

  // Forgets destroyed streams whose places other streams have now.
  void forget_streams() {
    std::set<StreamId> kept;
    const auto keep = [&kept](StreamId stream) { kept.insert(stream); };
    lifetime_.each_stream(keep);
    liveness_.each_stream(keep);
    std::set<StreamId> gone;
    reader_.forget_streams_if([&](StreamId stream) {
      const bool is_gone = !happens_before_.clocks().knows(stream) && !kept.contains(stream);
      if (is_gone) gone.insert(stream);
      return is_gone;
    });
    if (gone.empty()) return;
    for (Checker& checker : checkers_) {
      checker.log.forget_streams([&](StreamId stream) { return gone.contains(stream); });
    }
  }

  StreamLogReader reader_;
  LogOptions options_;
  HappensBefore happens_before_{
      {.host_free_waits = true, .foreign = true, .hazards_most = kHazardsMost}};
  Liveness liveness_{happens_before_.clocks(), kHazardsMost};
  Lifetime lifetime_{{.allow_outside = true, .report_overrun = true, .hazards_most = kHazardsMost}};
  std::array<Checker, 3> checkers_{{{happens_before_.log()}, {lifetime_.log()}, {liveness_.log()}}};
  Views views_;
  std::map<std::pair<std::string, std::string>, TraceUnjudged> unjudged_;  // by view and work
  std::uint64_t unjudged_views_ = 0;
  std::uint64_t accesses_ = 0;
  std::unordered_set<std::uint64_t> released_;  // hashed names of tokens that were forgotten
  std::size_t many_;
};

}  // namespace

LogReport check_log(LineSource& lines, const LogOptions& options) {
  LogCheck check(lines.file(), options);
  std::uint64_t judged = 0;
  const auto stops = [&] { return options.stop && options.stop(judged); };
  bool stopped = false;
  try {
    std::string_view text;
    while (lines.next(text) && !stops()) {
      check(text, lines.number());
      judged = lines.number();
    }
    stopped = stops();
  } catch (const std::length_error& error) {
    throw InputError(lines.file(), lines.number(), error.what());
  }
  LogReport report = check.finish(stopped);
  report.lines = judged;
  return report;
}

}  // namespace ferry::check
