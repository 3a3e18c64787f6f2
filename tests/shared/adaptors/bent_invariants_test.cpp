// Each assertion of the adaptors is seen to fail.
#include <gtest/gtest.h>

#include <memory>

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "tests/sim/support/world.h"

namespace ferry {
namespace {

TEST(AdaptorInvariants, AnAdaptorIsToldWhatItCanDo) {
  test::World world;
  EXPECT_DEATH(Bent<sim::SimDevice>(world.device(), Mutation{Step::kProduced, Bend::kDelay}),
               "a bend applies to its step");
  EXPECT_DEATH(Counted<sim::SimDevice>(world.device(), nullptr),
               "an observed device has an observer");
  EXPECT_DEATH(FaultPoint(Step::kReload, -1), "calls that may fail are counted from 0");
}

}  // namespace
}  // namespace ferry
