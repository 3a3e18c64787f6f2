// What liveness says of a program, and what happens when every thread, every stream and the one
// thread of host functions go on in every order: a deadlock is reported if and only if there is an
// order that ends in one.
#include "sim/check/liveness.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/check/happens_before.h"
#include "sim/choices/draws.h"

namespace ferry::check {
namespace {

using Kind = StreamOpKind;

constexpr std::uint32_t kThreads = 2, kStreams = 3, kTokens = 2;

// Two threads, and three streams, each one thread's, as is each event: the threads meet by tokens
// alone. A token is released once, or never; a thread acquires what was released before.
std::vector<StreamOp> program(const std::vector<std::array<std::uint32_t, 4>>& draws) {
  std::vector<StreamOp> ops;
  std::array<bool, kTokens> released{};
  for (const auto& [what, thread, where, which] : draws) {
    StreamOp op;
    constexpr std::array kKinds = {
        Kind::kHostFunc, Kind::kHostFunc, Kind::kRecord,  Kind::kWait,    Kind::kStreamSync,
        Kind::kRelease,  Kind::kRelease,  Kind::kAcquire, Kind::kAcquire, Kind::kAcquire};
    op.kind = kKinds[what % kKinds.size()];
    op.in_stream = op.kind == Kind::kAcquire || op.kind == Kind::kRelease ? what % 4 != 0 : false;
    const bool by_thread = op.kind == Kind::kAcquire || op.kind == Kind::kRelease;
    op.stream = StreamId{where % kStreams};
    op.thread = HostThread{(by_thread && !op.in_stream ? thread : where % kStreams) % kThreads};
    op.event = EventId{static_cast<std::uint32_t>(op.thread)};
    op.token = HostToken{which % kTokens};
    bool& gone = released[which % kTokens];
    if (op.kind == Kind::kRelease && std::exchange(gone, true)) continue;
    if (op.kind == Kind::kAcquire && !op.in_stream && !gone) continue;
    ops.push_back(op);
  }
  return ops;
}

bool on_stream(const StreamOp& op) {
  return op.kind == Kind::kHostFunc || op.kind == Kind::kRecord || op.kind == Kind::kWait ||
         op.in_stream;
}

// Runs a program in every order.
class Everywhere {
 public:
  explicit Everywhere(const std::vector<StreamOp>& ops) : ops_(ops) {}
  bool deadlocks() { return visit({std::vector<bool>(ops_.size()), {}, kNobody}); }

 private:
  static constexpr std::size_t kNobody = ~std::size_t{0};
  struct State {
    std::vector<bool> issued;  // for a synchronisation, a thread's release or acquire: done
    std::vector<bool> done;    // on its stream
    std::size_t function;      // the host function that has begun, and waits
    bool operator<(const State& other) const {
      return std::tie(issued, done, function) < std::tie(other.issued, other.done, other.function);
    }
  };

  bool visit(State state) {
    state.done.resize(ops_.size());
    if (!seen_.insert(state).second) return false;
    bool moved = false;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      State next = state;
      if (!state.issued[i]) {
        if (!may_issue(state, i)) continue;
        next.issued[i] = true;
      } else if (on_stream(ops_[i]) && !state.done[i]) {
        if (!may_run(state, i)) continue;
        const bool waits = ops_[i].kind == Kind::kAcquire && !released(state, ops_[i].token);
        if (waits && state.function == i) continue;
        next.function = waits ? i : kNobody;
        if (!is_function(ops_[i])) next.function = state.function;
        next.done[i] = !waits;
      } else {
        continue;
      }
      moved = true;
      if (visit(std::move(next))) return true;
    }
    return !moved && !finished(state);
  }

  static bool is_function(const StreamOp& op) { return op.kind == Kind::kHostFunc || op.in_stream; }
  bool finished(const State& state) const {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!state.issued[i] || (on_stream(ops_[i]) && !state.done[i])) return false;
    }
    return true;
  }
  bool released(const State& state, HostToken token) const {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const bool done = on_stream(ops_[i]) ? state.done[i] : state.issued[i];
      if (ops_[i].kind == Kind::kRelease && ops_[i].token == token && done) return true;
    }
    return false;
  }
  bool may_issue(const State& state, std::size_t i) const {
    const StreamOp& op = ops_[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (ops_[j].thread == op.thread && !state.issued[j]) return false;
    }
    if (op.kind == Kind::kAcquire && !op.in_stream) return released(state, op.token);
    if (op.kind != Kind::kStreamSync) return true;
    for (std::size_t j = 0; j < i; ++j) {
      if (on_stream(ops_[j]) && ops_[j].stream == op.stream && !state.done[j]) return false;
    }
    return true;
  }
  bool may_run(const State& state, std::size_t i) const {
    const StreamOp& op = ops_[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (on_stream(ops_[j]) && ops_[j].stream == op.stream && !state.done[j]) return false;
    }
    if (is_function(op)) return state.function == kNobody || state.function == i;
    if (op.kind != Kind::kWait) return true;
    for (std::size_t j = i; j-- > 0;) {
      if (ops_[j].kind == Kind::kRecord && ops_[j].event == op.event) return state.done[j];
    }
    return true;
  }

  const std::vector<StreamOp>& ops_;
  std::set<State> seen_;
};

using Blind = bool (*)(const StreamOp&);

// Those that `blind` says true of are not seen.
bool reports(const std::vector<StreamOp>& ops, Blind blind = nullptr) {
  HappensBefore order;
  Liveness liveness(order.clocks());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool seen = !blind || !blind(ops[i]);
    if (seen) liveness.before(ops[i]);
    order(ops[i]);
    if (seen) liveness.after(ops[i], i);
  }
  liveness.finish();
  return !liveness.hazards().empty();
}

std::string text(const std::vector<StreamOp>& ops) {
  std::string words;
  for (const StreamOp& op : ops) {
    words += "\n  thread " + std::to_string(static_cast<int>(op.thread)) + ": " +
             std::string(name(op.kind));
    if (op.kind == Kind::kRelease || op.kind == Kind::kAcquire)
      words += " t" + std::to_string(static_cast<int>(op.token));
    if (op.kind == Kind::kRecord || op.kind == Kind::kWait)
      words += " e" + std::to_string(static_cast<int>(op.event));
    if (on_stream(op) || op.kind == Kind::kStreamSync)
      words += " on " + std::to_string(static_cast<int>(op.stream));
  }
  return words;
}

std::vector<StreamOp> drawn(std::uint64_t number, int length) {
  choices::Draws draws(5, number);
  std::vector<std::array<std::uint32_t, 4>> numbers(static_cast<std::size_t>(length));
  for (auto& op : numbers) {
    for (std::uint32_t& each : op) each = static_cast<std::uint32_t>(draws.bits() >> 40);
  }
  return program(numbers);
}

TEST(LivenessProp, IsWhatEveryOrderShows) {
  EXPECT_TRUE(rc::check("reported if and only if some order stops", [] {
    const auto ops = program(
        *rc::gen::resize(9, rc::gen::arbitrary<std::vector<std::array<std::uint32_t, 4>>>()));
    RC_ASSERT(reports(ops) == Everywhere(ops).deadlocks());
  }));
  int deadlocks = 0, clean = 0;
  for (std::uint64_t number = 0; number < 3000; ++number) {
    const auto ops = drawn(number, 9);
    const bool stops = Everywhere(ops).deadlocks();
    (stops ? deadlocks : clean)++;
    ASSERT_EQ(reports(ops), stops) << number << text(ops);
  }
  EXPECT_GT(deadlocks, 500);
  EXPECT_GT(clean, 500);
}

// Who does not see some of the ops is wrong about some of the programs.
TEST(LivenessProp, WhoIsBlindDisagrees) {
  for (const Blind blind : {Blind{[](const StreamOp& op) { return op.kind == Kind::kHostFunc; }},
                            Blind{[](const StreamOp& op) { return op.kind == Kind::kRelease; }},
                            Blind{[](const StreamOp& op) { return op.in_stream; }}}) {
    int wrong = 0;
    for (std::uint64_t number = 0; number < 6000; ++number) {
      const auto ops = drawn(number, 9);
      wrong += reports(ops, blind) != Everywhere(ops).deadlocks() ? 1 : 0;
    }
    EXPECT_GT(wrong, 0);
  }
}

}  // namespace
}  // namespace ferry::check
