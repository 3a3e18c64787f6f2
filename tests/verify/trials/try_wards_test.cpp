// Random trainings with wards: the core is right, and each bend of each step shows.
#include "verify/trials/try_wards.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ferry::verify {
namespace {

std::string first_verdict(std::uint64_t trainings, std::optional<Mutation> mutation) {
  for (std::uint64_t number = 0; number < trainings; ++number) {
    if (const auto verdict = try_wards(number, mutation)) {
      return "training " + std::to_string(number) + ": " + to_string(*verdict);
    }
  }
  return "";
}

TEST(TryWards, NoOracleObjectsToTheCore) { EXPECT_EQ(first_verdict(3000, {}), ""); }

TEST(TryWards, EachBendOfEachStepShows) {
  int bends = 0;
  for (auto step = static_cast<std::size_t>(Step::kBringAllocate); step < kSteps; ++step) {
    for (std::size_t bend = 0; bend < kBendNames.size(); ++bend) {
      const Mutation mutation{static_cast<Step>(step), static_cast<Bend>(bend)};
      if (!applies(mutation)) continue;
      ++bends;
      EXPECT_NE(first_verdict(400, mutation), "")
          << name(mutation.step) << ": " << name(mutation.bend);
    }
  }
  EXPECT_EQ(bends, 49);
}

// The verdict names the step that is missing.
TEST(TryWards, AVerdictNamesTheMissingStep) {
  const std::string verdict = first_verdict(400, Mutation{Step::kTakeBrought, Bend::kDrop});
  EXPECT_NE(verdict.find("`take brought` missing: `bring`"), std::string::npos) << verdict;
}

}  // namespace
}  // namespace ferry::verify
