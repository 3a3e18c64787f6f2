// A bend bends the step that it names, and nothing else.
#include "verify/trials/bends.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "shared/adaptors/bent.h"
#include "tests/verify/trials/verdicts.h"
#include "verify/trials/noted_device.h"

namespace ferry::verify {
namespace {

TEST(Bends, EachBendsItsStep) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    choices::Draws draws(seed);
    EXPECT_EQ(words(judge_bend(draws)), "") << seed;
  }
}

TEST(Bends, TheNotesAreTheCallsInTheirOrder) {
  NotedDevice noted(1, 2, 3);
  Bent<NotedDevice> device(noted, Mutation{Step::kConsume, Bend::kDelay});
  const int event = device.record(Step::kReloaded, 3);
  device.wait(Step::kConsume, 1, event);
  device.record_use(Step::kEscaped, 5, 1);
  device.record(Step::kNodeDone, 1);
  const std::vector<NotedCall> must = {
      {StepKind::kRecord, Step::kReloaded, 3, 1, 0},
      {StepKind::kUse, Step::kEscaped, 1, 0, 5},
      {StepKind::kRecord, Step::kNodeDone, 1, 2, 0},
      {StepKind::kWait, Step::kConsume, 1, 1, 0},
  };
  EXPECT_EQ(noted.calls(), must);
}

}  // namespace
}  // namespace ferry::verify
