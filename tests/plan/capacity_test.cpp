// A candidate's verdict: the memory that it needs is found once, and can then be judged for any
// limits.
#include "plan/capacity.h"
#include "tests/sim/support/sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace ferry::plan {
namespace {

using test::kMiB;

// A training that allocates 100 MiB and reserves 300 MiB. It takes longer below 300 MiB, and fails
// below 140 MiB.
class Training {
 public:
  sim::Simulation operator()(std::int64_t device_bytes) {
    ++runs;
    sim::Simulation run;
    run.step_ns = device_bytes == 0 || device_bytes >= 300 * kMiB ? 1'000 : 1'500;
    run.device_peak_bytes = 100 * kMiB;
    run.device_reserved_bytes = 300 * kMiB;
    run.host_peak_bytes = 8 * kMiB;
    if (device_bytes > 0 && device_bytes < 140 * kMiB)
      run.errors.push_back({.message = "out of memory"});
    return run;
  }
  int runs = 0;
};

class CapacityTest : public ::testing::Test {
 protected:
  // Judges again. The host has 16 MiB unless the test says otherwise.
  Verdict again(const Verdict& known, std::int64_t budget, std::int64_t host = 16 * kMiB) {
    return judge_again(known, std::ref(training_), {budget, host, kUnlimited}, Judged::kReserved);
  }
  Training training_;
  const Verdict first_ = judge(std::ref(training_), {kUnlimited, 16 * kMiB, kUnlimited});
};

TEST_F(CapacityTest, TheLeastIsFoundToTwoMebibytes) {
  EXPECT_TRUE(first_.fits);
  EXPECT_GE(first_.least_bytes, 140 * kMiB);
  EXPECT_LE(first_.least_bytes, 142 * kMiB);
}

// The minimum is known to 2 MiB, or to 1/256 of it if that is more.
TEST_F(CapacityTest, WhatMayRunInALittleLessIsNotSaidToNeedMore) {
  for (const std::int64_t scale : {1, 10}) {
    const auto larger = [&](std::int64_t bytes) {
      sim::Simulation run = training_(bytes / scale);
      run.device_peak_bytes *= scale;
      run.device_reserved_bytes *= scale;
      return run;
    };
    const Verdict found = judge(larger, {kUnlimited, 16 * kMiB, kUnlimited});
    EXPECT_FALSE(found.needs_more_than(found.least_bytes));
    EXPECT_FALSE(found.needs_more_than(140 * kMiB * scale));
    EXPECT_TRUE(found.needs_more_than(137 * kMiB * scale));
  }
  const Verdict all{.unlimited = training_(0), .least_bytes = 101 * kMiB};
  EXPECT_TRUE(all.needs_more_than(100 * kMiB - 1)) << "it allocates more";
  EXPECT_FALSE(all.needs_more_than(100 * kMiB));
}

TEST_F(CapacityTest, WhatIsJudgedAgainIsAsIfItWereJudgedAnew) {
  for (const std::int64_t budget : {120, 139, 140, 141, 200, 299, 300, 400}) {
    for (const std::int64_t host : {4, 16}) {
      SCOPED_TRACE(testing::Message() << budget << ", " << host);
      const Limits limits{budget * kMiB, host * kMiB, kUnlimited};
      const Verdict anew = judge(std::ref(training_), limits);
      // The result does not depend on the limits of the earlier verdict.
      for (const Verdict& known : {first_, again(first_, 150 * kMiB), again(first_, kMiB)}) {
        const Verdict found = again(known, limits.budget_bytes, limits.host_bytes);
        EXPECT_EQ(found.fits, anew.fits);
        EXPECT_EQ(found.by_retries, anew.by_retries);
        EXPECT_EQ(found.step_ns, anew.step_ns);
        EXPECT_EQ(found.judged_bytes, anew.judged_bytes);
        EXPECT_EQ(found.refusal, anew.refusal);
        EXPECT_EQ(found.least_bytes, anew.least_bytes);
      }
    }
  }
}

TEST_F(CapacityTest, BelowWhatItReservesItTakesAsLongAsItDoesThere) {
  const Verdict roomy = again(first_, 300 * kMiB), tight = again(first_, 200 * kMiB);
  EXPECT_TRUE(roomy.fits);
  EXPECT_FALSE(roomy.by_retries);
  EXPECT_EQ(roomy.step_ns, 1'000);
  EXPECT_TRUE(tight.fits);
  EXPECT_TRUE(tight.by_retries);
  EXPECT_EQ(tight.step_ns, 1'500);
  const Verdict none = again(first_, 120 * kMiB);
  EXPECT_FALSE(none.fits);
  EXPECT_EQ(none.refusal, "out of memory");
}

TEST_F(CapacityTest, ToJudgeAgainRunsItOnceAtMost) {
  training_.runs = 0;
  again(first_, 400 * kMiB);
  EXPECT_EQ(training_.runs, 0);
  again(first_, 200 * kMiB);
  EXPECT_EQ(training_.runs, 1);
}

TEST_F(CapacityTest, WhatFailsFailsAgain) {
  const auto fails = [](std::int64_t) {
    sim::Simulation run;
    run.errors.push_back({.message = "no"});
    return run;
  };
  const Limits limits{kUnlimited, kUnlimited, kUnlimited};
  const Verdict found = judge_again(judge(fails, limits), fails, limits, Judged::kReserved);
  EXPECT_FALSE(found.fits);
  EXPECT_EQ(found.refusal, "no");
}

}  // namespace
}  // namespace ferry::plan
