// An oracle that is not ours: ThreadSanitizer judges programs of stream operations as fibers.
//
// Every stream and host thread is a fiber, and accesses memory in issue order; what orders them is
// release and acquire, of a fresh token for each record, each issue by the host, each
// synchronisation, so that a token is a snapshot as an event's record is. Then program by program
// ThreadSanitizer and happens-before must find the first race at the same op, or none. A checker
// that does not see waits must not agree.
//
// A cell of the program is one word for each pair of fibers: ThreadSanitizer remembers only a few
// accesses to a word. Pools are left out: it knows no promise of an allocator's. Only its runtime
// is linked, and called as instrumented code would: this file itself is not instrumented, or the
// fibers' use of it would race, too.
//
//   test_fibers [PROGRAMS]      exit code 0: they agree; prints how often each verdict was
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/support/repair.h"
#include "tests/sim/support/stream_program.h"

namespace {
int reports = 0;
}

// What instrumented code calls; and what ThreadSanitizer calls, by name: reports are counted and
// not printed.
extern "C" void __tsan_read8(void*);
extern "C" void __tsan_write8(void*);
namespace __tsan {
class ReportDesc;
bool OnReport(const ReportDesc*, bool);
bool OnReport(const ReportDesc*, bool) {
  reports++;
  return true;
}
}  // namespace __tsan
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "suppress_equal_stacks=0:suppress_equal_addresses=0:report_thread_leaks=0:symbolize=0:"
         "exitcode=0:history_size=4";
}

namespace ferry::sim {
namespace {

constexpr std::size_t kStreams = 4, kActors = kStreams + 2;  // then the host threads
constexpr std::size_t kPairs = kActors * kActors;

class Fibers {
 public:
  explicit Fibers(std::size_t cells)
      : words_(2 * cells * kPairs),
        tokens_(kTokens),
        cells_(cells),
        main_(__tsan_get_current_fiber()) {
    for (void*& fiber : fibers_) fiber = __tsan_create_fiber(0);
  }
  ~Fibers() {
    for (void* fiber : fibers_) {  // with it everything is done, before memory goes
      __tsan_switch_to_fiber(fiber, 0);
      __tsan_switch_to_fiber(main_, 0);
      __tsan_destroy_fiber(fiber);
    }
  }

  void operator()(const StreamOp& op) {
    const std::size_t host = kStreams + static_cast<std::size_t>(op.thread);
    const auto stream = static_cast<std::size_t>(op.stream);
    const auto event = static_cast<std::uint32_t>(op.event);
    const auto token = static_cast<std::uint32_t>(op.token);
    switch (op.kind) {
      case StreamOpKind::kKernel:
      case StreamOpKind::kMemset:
      case StreamOpKind::kHostFunc:
      case StreamOpKind::kCopy:
        return work(op, stream, host);
      case StreamOpKind::kHostRead:
        return touch(host, {&op.range, 1}, {});
      case StreamOpKind::kHostWrite:
        return touch(host, {}, {&op.range, 1});
      case StreamOpKind::kRecord:
        issue(stream, host);
        events_[event] = release(stream);
        return;
      case StreamOpKind::kWait:
        issue(stream, host);
        if (events_.contains(event)) acquire(stream, events_[event]);
        return;
      case StreamOpKind::kEventSync:
        if (events_.contains(event)) acquire(host, events_[event]);
        return;
      case StreamOpKind::kStreamSync:
        issue(stream, host);
        return acquire(host, release(stream));
      case StreamOpKind::kDeviceSync:
        for (std::size_t i = 0; i < kStreams; ++i) acquire(host, release(i));
        return;
      case StreamOpKind::kRelease:
        host_tokens_[token] = release(host);
        return;
      case StreamOpKind::kAcquire:
        if (host_tokens_.contains(token)) acquire(host, host_tokens_[token]);
        return;
      case StreamOpKind::kStream:
        kinds_[stream] = op.stream_kind;
        return;
      case StreamOpKind::kEventDestroy:
        events_.erase(event);
        return;
      default:
        std::abort();  // pools
    }
  }

 private:
  static constexpr std::size_t kTokens = 8192;

  char* release(std::size_t actor) {
    if (used_ == kTokens) std::abort();
    char* token = reinterpret_cast<char*>(&tokens_[used_++]);
    on(actor, [&] { __tsan_release(token); });
    return token;
  }
  void acquire(std::size_t actor, char* token) {
    on(actor, [&] { __tsan_acquire(token); });
  }
  template <class F>
  void on(std::size_t actor, F&& f) {
    __tsan_switch_to_fiber(fibers_[actor], __tsan_switch_to_fiber_no_sync);
    f();
    __tsan_switch_to_fiber(main_, __tsan_switch_to_fiber_no_sync);
  }

  // What the host did comes first; and the legacy stream waits for all blocking ones, which then
  // wait for it.
  void issue(std::size_t stream, std::size_t host) {
    acquire(stream, release(host));
    for (std::size_t other = 0; other < kStreams; ++other) {
      const bool joins =
          (kinds_[stream] == StreamKind::kLegacy && kinds_[other] == StreamKind::kBlocking) ||
          (kinds_[stream] == StreamKind::kBlocking && kinds_[other] == StreamKind::kLegacy);
      if (joins) acquire(stream, release(other));
    }
  }

  void work(const StreamOp& op, std::size_t stream, std::size_t host) {
    issue(stream, host);
    if (op.host_order != HostOrder::kStaged) {
      touch(stream, op.reads, op.writes);
      if (op.host_order == HostOrder::kDone) acquire(host, release(stream));
      return;
    }
    acquire(host, release(stream));
    touch(host, op.reads, {});
    issue(stream, host);
    touch(stream, {}, op.writes);
  }

  void touch(std::size_t actor, std::span<const Range> reads, std::span<const Range> writes) {
    on(actor, [&] {
      each_word(actor, reads, __tsan_read8);
      each_word(actor, writes, __tsan_write8);
    });
  }
  template <class F>
  void each_word(std::size_t actor, std::span<const Range> ranges, F&& f) {
    for (const Range& range : ranges) {
      for (std::uint64_t at = range.address; at < range.end(); ++at) {
        const std::size_t cell = check::is_host(at) ? cells_ + (at - check::kHostBase) : at;
        for (std::size_t other = 0; other < kActors; ++other) {
          if (other == actor) continue;
          const std::size_t pair = std::min(actor, other) * kActors + std::max(actor, other);
          f(&words_[cell * kPairs + pair]);
        }
      }
    }
  }

  std::vector<std::uint64_t> words_, tokens_;
  std::size_t cells_, used_ = 0;
  void* main_;
  void* fibers_[kActors];
  StreamKind kinds_[kActors] = {};
  std::map<std::uint32_t, char*> events_, host_tokens_;
};

// The op of the first race; -1: none.
long first_race_of_fibers(const test::StreamProgram& program, std::size_t cells) {
  Fibers fibers(cells);
  reports = 0;
  long number = 0, first = -1;
  program.each([&](const StreamOp& op) {
    if (first < 0) fibers(op);
    if (first < 0 && reports > 0) first = number;
    number++;
  });
  return first;
}

long first_race_of_clocks(const test::StreamProgram& program, bool blind) {
  check::HappensBefore checker;
  long number = 0, first = -1;
  program.each([&](StreamOp op) {
    if (blind && op.kind == StreamOpKind::kWait) op.event = EventId{~0u};
    checker(op);
    if (first < 0 && !checker.hazards().empty()) first = number;
    number++;
  });
  return first;
}

// A third is as drawn, a third safe, a third safe but for one wait that is gone.
test::StreamProgram program_of(std::uint64_t number, const test::ProgramShape& shape) {
  test::StreamProgram program = make_program(test::draw_program(number), shape);
  if (number % 3 == 0) return program;
  program = repaired(std::move(program));
  for (std::size_t i = program.calls.size(); number % 3 == 2 && i-- > 0;) {
    if (program.calls[i].op.kind != StreamOpKind::kWait) continue;
    forget(program.calls[i]);
    break;
  }
  return program;
}

int agree(std::uint64_t programs) {
  std::uint64_t racy = 0, safe = 0, differ = 0, blind_differ = 0;
  for (std::uint64_t number = 0; number < programs; ++number) {
    const test::ProgramShape shape{
        .accesses = 40, .cells = number % 2 == 0 ? 8u : 24u, .pools = false, .legacy = true};
    const test::StreamProgram program = program_of(number, shape);
    const long oracle = first_race_of_fibers(program, shape.cells);
    const long found = first_race_of_clocks(program, false);
    (oracle >= 0 ? racy : safe)++;
    blind_differ += first_race_of_clocks(program, true) != oracle ? 1 : 0;
    if (found == oracle) continue;
    if (differ++ < 3) {
      std::printf("program %llu: ThreadSanitizer %ld, happens-before %ld\n%s\n",
                  static_cast<unsigned long long>(number), oracle, found, to_text(program).c_str());
    }
  }
  std::printf(
      "%llu programs: %llu with a race, %llu without; the verdicts differ on %llu, without "
      "waits on %llu\n",
      static_cast<unsigned long long>(programs), static_cast<unsigned long long>(racy),
      static_cast<unsigned long long>(safe), static_cast<unsigned long long>(differ),
      static_cast<unsigned long long>(blind_differ));
  const bool telling = racy > programs / 10 && safe > programs / 10 && blind_differ > 0;
  return differ == 0 && telling ? 0 : 1;
}

}  // namespace
}  // namespace ferry::sim

int main(int argc, char** argv) {
  return ferry::sim::agree(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000);
}
