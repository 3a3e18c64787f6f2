// `best` on chains, beside the optimal schedule of all that recompute and do not offload, nested
// recomputes among them (rotor.h). Memory is counted alike: what is allocated at the peak.
//
// FERRY_ROTOR=1 in the environment takes longer chains as well and prints a table.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/best.h"
#include "sim/plan/planner.h"
#include "tests/sim/support/graphs.h"
#include "tests/sim/support/rotor.h"

namespace ferry::plan {
namespace {

constexpr std::int64_t kUnit = std::int64_t{2} << 20;

struct Point {
  std::int64_t units = 0;  // allocated at the peak
  std::int64_t more_ns = 0;
};

struct Shape {
  const char* name;
  std::size_t stages;
  bool equal_bytes;  // then the allocator has no fragments
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
    reserved_bytes_ = keep.device_reserved_bytes;
    rotor_.emplace(1, std::move(rotors), keep_units_);
  }

  std::int64_t keep_units() const { return keep_units_; }
  // Beside what computing alone takes.
  std::optional<std::int64_t> rotor_ns(std::int64_t units) const {
    const std::optional<std::int64_t> ns = rotor_->ns(units);
    return ns ? std::optional(*ns - computes_ns_) : std::nullopt;
  }
  // `percent`: of what keeping everything reserves. None: nothing fits.
  std::optional<Point> best(int percent, bool moves) const {
    PlanRequest request;
    request.budget_bytes = reserved_bytes_ / 100 * percent;
    request.policies = {Policy::kBest};
    request.check = false;
    Hardware card = card_;
    if (!moves) card.host_memory_bytes = 0;
    const PlanResult result = plan(program_, card, request);
    const sim::Simulation& run = result.rows.front().simulation;
    if (!result.rows.front().is_answer()) return std::nullopt;
    return Point{(run.device_peak_bytes + kUnit - 1) / kUnit, run.step_ns - keep_ns_};
  }
  std::string permille(std::int64_t ns) const {
    return std::to_string(1000 + ns * 1000 / keep_ns_);
  }

 private:
  std::vector<test::Stage> stages_;
  Program program_;
  Hardware card_ = find_hardware("h100");
  std::int64_t keep_ns_ = 0, keep_units_ = 0, computes_ns_ = 0, reserved_bytes_ = 0;
  std::optional<test::Rotor> rotor_;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{"equal, 20", 20, true, true},
                            {"equal bytes, 20", 20, true, false, 3},
                            {"equal bytes, 50", 50, true, false, 5},
                            {"random, 20", 20, false, false, 3},
                            {"random, 50", 50, false, false, 5}};
  if (std::getenv("FERRY_ROTOR")) {
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

// Where only one input fits beside a stage's backward, each backward runs all before it again: in a
// chain of 20 that is 2 + 3 + … + 19 forwards. (The loss has room beside the last stage, and the
// second beside the first, whose input is small.)
TEST(BestRotorTest, InTheLeastMemoryEachBackwardBeginsAnew) {
  const Chain chain(shapes().front());
  const std::int64_t least = 1 + 10 + 3 * 10;
  EXPECT_EQ(chain.rotor_ns(least - 1), std::nullopt);
  EXPECT_EQ(chain.rotor_ns(least), 189 * 100'000);
}

void print(const Shape& shape, const Chain& chain, int percent, const Point& recomputes,
           const Point& both) {
  const auto rotor = chain.rotor_ns(recomputes.units);
  std::printf("| %s | 0.%02d | %lld of %lld | %s | %s | %s |\n", shape.name, percent,
              static_cast<long long>(recomputes.units), static_cast<long long>(chain.keep_units()),
              rotor ? chain.permille(*rotor).c_str() : "none",
              chain.permille(recomputes.more_ns).c_str(), chain.permille(both.more_ns).c_str());
}

// Where storages differ, what is behind are plans that fit in spite of the allocator's fragments,
// of which rotor knows nothing.
TEST(BestRotorTest, BestIsNotBehindTheOptimumOfItsPeak) {
  std::size_t compared = 0, ahead = 0, behind = 0, moves_help = 0;
  for (const Shape& each : shapes()) {
    const Chain chain(each);
    for (int percent = 95; percent >= 20; percent -= 15) {
      const std::optional<Point> recomputes = chain.best(percent, false);
      if (!recomputes) continue;
      const auto rotor = chain.rotor_ns(recomputes->units);
      ++compared;
      ahead += !rotor || recomputes->more_ns < *rotor;
      const bool is_behind = rotor && recomputes->more_ns > *rotor;
      behind += is_behind;
      EXPECT_FALSE(each.equal_bytes && is_behind) << each.name << " " << percent;
      const std::optional<Point> both = chain.best(percent, true);
      ASSERT_TRUE(both) << each.name << " " << percent;
      EXPECT_LE(both->more_ns, recomputes->more_ns) << each.name << " " << percent;
      moves_help += both->more_ns < recomputes->more_ns;
      if (std::getenv("FERRY_ROTOR")) print(each, chain, percent, *recomputes, *both);
    }
  }
  EXPECT_GE(compared, 20u);
  EXPECT_GE(ahead, compared * 9 / 10);
  EXPECT_LE(behind, 1u);
  EXPECT_GE(moves_help, compared / 2);
}

}  // namespace
}  // namespace ferry::plan
