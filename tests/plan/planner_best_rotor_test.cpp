// Compares `best` on chains with the optimal schedule that recomputes, also in nested spans, and
// does not offload (rotor.h). Both count memory in the same way: budgets are of allocated bytes.
//
// FERRY_ROTOR=1 in the environment also tries longer chains and prints a table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "plan/keep_trace.h"
#include "plan/nest_table.h"
#include "plan/planner.h"
#include "plan/span_model.h"
#include "tests/plan/support/rotor.h"
#include "tests/sim/support/graphs.h"

namespace ferry::plan {
namespace {

constexpr std::int64_t kUnit = std::int64_t{2} << 20;

struct Shape {
  const char* name;
  std::size_t stages;
  bool equal_bytes;
  bool equal_times;
  std::uint64_t seed = 0;
};

class Chain {
 public:
  explicit Chain(const Shape& shape) {
    choices::Draws draws(91, shape.seed);
    std::vector<test::RotorStage> rotors;
    for (std::size_t i = 0; i < shape.stages; ++i) {
      const std::int64_t out = shape.equal_bytes ? 10 : draws.in(5, 20);
      const std::int64_t more = shape.equal_bytes || draws.one_in(2) ? 0 : draws.in(5, 20);
      const std::int64_t ns = shape.equal_times ? 100'000 : draws.in(20, 400) * std::int64_t{1'000};
      stages_.push_back({out * kUnit, more * kUnit, ns, 2 * ns});
      rotors.push_back({out, out + more, ns, 2 * ns});
      computes_ns_ += 3 * ns;
    }
    rotors.push_back({0, 0, test::kLossNs, test::kLossNs});
    computes_ns_ += 2 * test::kLossNs;
    program_ = test::chain_of(stages_, kUnit, false);
    card_.launch_ns = 0;
    sim::SimulationOptions options;
    options.check = false;
    const sim::Simulation keep = sim::simulate(program_, card_, options);
    keep_ns_ = keep.step_ns;
    keep_units_ = keep.device_peak_bytes / kUnit;
    rotor_.emplace(1, std::move(rotors), keep_units_);
  }

  const Program& program() const { return program_; }
  const Hardware& card() const { return card_; }
  std::int64_t keep_units() const { return keep_units_; }
  std::int64_t keep_ns() const { return keep_ns_; }
  // Returns the time of the optimal schedule beyond computing alone; no value: no schedule fits.
  std::optional<std::int64_t> rotor_ns(std::int64_t units) const {
    const std::optional<std::int64_t> ns = rotor_->ns(units);
    return ns ? std::optional(*ns - computes_ns_) : std::nullopt;
  }
  // Returns the time of `best` beyond keep; no value: nothing fits. The budget has almost one unit
  // more, for the bytes of the loss, which rotor does not model.
  std::optional<std::int64_t> best_ns(std::int64_t units, bool moves) const {
    PlanRequest request;
    request.budget_bytes = (units + 1) * kUnit - 1;
    request.judged = Judged::kAllocated;
    request.policies = {Policy::kBest};
    request.check = false;
    Hardware card = card_;
    if (!moves) card.host_memory_bytes = 0;
    const PlanResult result = plan(program_, card, request);
    const sim::Simulation& run = result.rows.front().simulation;
    if (!result.rows.front().is_answer()) return std::nullopt;
    return run.step_ns - keep_ns_;
  }
  std::string permille(std::int64_t ns) const {
    return std::to_string(1000 + ns * 1000 / keep_ns_);
  }

 private:
  std::vector<test::Stage> stages_;
  Program program_;
  Hardware card_ = find_hardware("h100");
  std::int64_t keep_ns_ = 0, keep_units_ = 0, computes_ns_ = 0;
  std::optional<test::Rotor> rotor_;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{"equal, 20", 20, true, true}, {"random, 20", 20, false, false, 3}};
  if (std::getenv("FERRY_ROTOR")) {
    all.push_back({"equal bytes, 20", 20, true, false, 3});
    all.push_back({"equal bytes, 50", 50, true, false, 5});
    all.push_back({"random, 50", 50, false, false, 5});
    all.push_back({"random, 12", 12, false, false, 2});
    all.push_back({"equal, 100", 100, true, true});
    all.push_back({"random, 100", 100, false, false, 7});
  }
  return all;
}

TEST(BestRotorTest, MemoryIsCountedAlike) {
  for (const Shape& each : shapes()) {
    const Chain chain(each);
    EXPECT_EQ(chain.rotor_ns(chain.keep_units()), 0) << each.name;
    EXPECT_NE(chain.rotor_ns(chain.keep_units() - 1), 0) << each.name;
  }
}

// If only one input fits besides a stage's backward, each backward recomputes all stages before it:
// in a chain of 20 these are 2 + 3 + ... + 19 forwards. (The loss fits besides the last stage, and
// the second stage besides the first one, whose input is small.)
TEST(BestRotorTest, InTheLeastMemoryEachBackwardBeginsAnew) {
  const Chain chain(shapes().front());
  const std::int64_t least = 1 + 10 + 3 * 10;
  EXPECT_EQ(chain.rotor_ns(least - 1), std::nullopt);
  EXPECT_EQ(chain.rotor_ns(least), 189 * 100'000);
}

// For each budget, the simulator confirms the time and the memory that the table of nested spans
// predicts, and the time is at most that of rotor's optimum.
TEST(BestRotorTest, NestedSpansAreNotBehindAtAnyBudget) {
  std::size_t budgets = 0, ahead = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Chain chain({"random, 10", 10, false, false, seed});
    const SpanChoices choices(
        span_model(chain.program(), trace_keep(chain.program(), chain.card())));
    const NestTable table(choices);
    const std::int64_t held = choices.model().least_bytes;
    for (std::int64_t units = chain.keep_units(); units > 0; units -= 3) {
      const auto rotor = chain.rotor_ns(units);
      const std::int64_t left = units * kUnit - held + choices.slot_bytes() - 1;
      const auto slots =
          static_cast<std::int32_t>(std::max<std::int64_t>(left, 0) / choices.slot_bytes());
      ASSERT_EQ(table.fits(slots), rotor.has_value()) << seed << " " << units;
      if (!rotor) break;
      sim::SimulationOptions options;
      options.check = false;
      options.spans = table.spans(slots);
      const sim::Simulation run = sim::simulate(chain.program(), chain.card(), options);
      EXPECT_LE(run.device_peak_bytes / kUnit, units) << seed << " " << units;
      EXPECT_EQ(run.step_ns - chain.keep_ns(), table.ns(slots)) << seed << " " << units;
      EXPECT_LE(table.ns(slots), *rotor) << seed << " " << units;
      ++budgets;
      ahead += table.ns(slots) < *rotor;
    }
  }
  EXPECT_GE(budgets, 150u);
  EXPECT_GE(ahead, budgets / 8);
}

std::string cell(const Chain& chain, std::optional<std::int64_t> more_ns) {
  return more_ns ? chain.permille(*more_ns) : "none";
}

// `best` is at least as fast wherever rotor has a schedule. It is mostly faster, because a plan
// keeps the result of a span's last operator, so this operator is not recomputed.
TEST(BestRotorTest, BestIsNotBehindTheOptimum) {
  std::size_t compared = 0, ahead = 0, moves_help = 0;
  const int step = std::getenv("FERRY_ROTOR") ? 10 : 20;
  for (const Shape& each : shapes()) {
    const Chain chain(each);
    for (int percent = 90; percent >= 10; percent -= step) {
      const std::int64_t units = chain.keep_units() * percent / 100;
      const auto rotor = chain.rotor_ns(units);
      const auto recomputes = chain.best_ns(units, false);
      const auto both = chain.best_ns(units, true);
      if (std::getenv("FERRY_ROTOR")) {
        std::printf("| %s | 0.%02d | %s | %s | %s |\n", each.name, percent,
                    cell(chain, rotor).c_str(), cell(chain, recomputes).c_str(),
                    cell(chain, both).c_str());
      }
      ASSERT_TRUE(recomputes || !rotor) << each.name << " " << percent;
      if (!rotor) continue;
      ++compared;
      EXPECT_LE(*recomputes, *rotor) << each.name << " " << percent;
      ahead += *recomputes < *rotor;
      ASSERT_TRUE(both) << each.name << " " << percent;
      EXPECT_LE(*both, *recomputes) << each.name << " " << percent;
      moves_help += *both < *recomputes;
    }
  }
  EXPECT_GE(compared, shapes().size() * (step == 10 ? 7 : 4));
  EXPECT_GE(ahead, compared * 9 / 10);
  EXPECT_GE(moves_help, compared / 2);
}

}  // namespace
}  // namespace ferry::plan
