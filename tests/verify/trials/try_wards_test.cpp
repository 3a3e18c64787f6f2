// Random trainings whose optimizer state, or frozen weights, live on the host: the core is right,
// and each bend of each step shows.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "verify/trials/try_wards.h"
#include "verify/trials/try_weights.h"

namespace ferry::verify {
namespace {

using Trial = std::optional<Verdict> (*)(std::uint64_t number, std::optional<Mutation> mutation);

std::string first_verdict(Trial trial, std::uint64_t trainings, std::optional<Mutation> mutation) {
  for (std::uint64_t number = 0; number < trainings; ++number) {
    if (const auto verdict = trial(number, mutation)) {
      return "training " + std::to_string(number) + ": " + to_string(*verdict);
    }
  }
  return "";
}

// Tries each bend of each step of wards. Returns those that no training shows.
std::string unseen_bends(Trial trial, std::uint64_t trainings) {
  std::string unseen;
  for (auto step = static_cast<std::size_t>(Step::kBringAllocate); step < kSteps; ++step) {
    for (std::size_t bend = 0; bend < kBendNames.size(); ++bend) {
      const Mutation mutation{static_cast<Step>(step), static_cast<Bend>(bend)};
      if (!applies(mutation) || !first_verdict(trial, trainings, mutation).empty()) continue;
      unseen += std::string(name(mutation.step)) + ": " + std::string(name(mutation.bend)) + "\n";
    }
  }
  return unseen;
}

TEST(TryWards, NoOracleObjectsToTheCore) { EXPECT_EQ(first_verdict(try_wards, 3000, {}), ""); }

TEST(TryWards, EachBendOfEachStepShows) { EXPECT_EQ(unseen_bends(try_wards, 400), ""); }

TEST(TryWeights, NoOracleObjectsToTheCore) { EXPECT_EQ(first_verdict(try_weights, 3000, {}), ""); }

// `leave` and `take returned` are not used: a weight is dropped when its copy has begun.
TEST(TryWeights, EachBendOfEachStepShowsThatIsUsed) {
  std::string unused;
  for (const Step step : {Step::kLeave, Step::kTakeReturned}) {
    for (const char* const bend : {"drop", "other stream", "delay", "stale"}) {
      unused += std::string(name(step)) + ": " + bend + "\n";
    }
  }
  EXPECT_EQ(unseen_bends(try_weights, 1000), unused);
}

// The verdict names the step that is missing.
TEST(TryWards, AVerdictNamesTheMissingStep) {
  const std::string verdict =
      first_verdict(try_wards, 400, Mutation{Step::kTakeBrought, Bend::kDrop});
  EXPECT_NE(verdict.find("`take brought` missing: `bring`"), std::string::npos) << verdict;
}

}  // namespace
}  // namespace ferry::verify
