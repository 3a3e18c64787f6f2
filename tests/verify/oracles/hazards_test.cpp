// Which frees under a use are forgiven, and whose.
#include "verify/oracles/hazards.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::verify {
namespace {

check::Hazard hazard(check::HazardKind kind, Step used_by) {
  check::Hazard made;
  made.kind = kind;
  made.earlier.step = used_by;
  return made;
}

TEST(Hazards, AFreeUnderTheProgramsOwnUseIsForgiven) {
  using check::HazardKind;
  const std::vector<check::Hazard> all = {hazard(HazardKind::kFreeUnderUse, Step::kUser),
                                          hazard(HazardKind::kFreeUnderUse, Step::kReload),
                                          hazard(HazardKind::kReuse, Step::kUser)};
  std::vector<check::Hazard> left = all;
  EXPECT_TRUE(forgive_frees(left, Uses::kOfTheProgram));
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].earlier.step, Step::kReload) << "a copy of the core's";
  EXPECT_EQ(left[1].kind, HazardKind::kReuse);
  EXPECT_FALSE(forgive_frees(left, Uses::kOfTheProgram));
  EXPECT_TRUE(forgive_frees(left, Uses::kOfAll));
  EXPECT_EQ(left.size(), 1u);
}

}  // namespace
}  // namespace ferry::verify
