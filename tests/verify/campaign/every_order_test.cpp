#include "verify/campaign/every_order.h"
#include "verify/core/core_trials.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "verify/campaign/campaign.h"

namespace ferry::verify {
namespace {

Campaign orders_of(std::int64_t programs, std::uint64_t most, std::optional<Mutant> canary = {}) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seed = 1;
  options.programs = programs;
  options.orders = most;
  options.canary = std::move(canary);
  return run_campaign(options);
}

TEST(EveryOrderTest, ProgramsAreCountedWithTheirClasses) {
  const Campaign campaign = orders_of(6, 50);
  EXPECT_FALSE(campaign.failure.has_value());
  EXPECT_EQ(campaign.coverage.programs, 6);
  EXPECT_EQ(campaign.coverage.features.at("pipeline"), 6);
  EXPECT_GT(campaign.coverage.classes, 6);  // more than one of some program
  EXPECT_LE(campaign.coverage.classes, campaign.coverage.runs);
  EXPECT_LE(campaign.coverage.runs, 6 * 50);
}

TEST(EveryOrderTest, WhereThereAreTooManyTheProgramIsCutOff) {
  const Campaign whole = orders_of(1, 1000);
  EXPECT_EQ(whole.coverage.cut_off, 0);
  const Campaign cut = orders_of(1, static_cast<std::uint64_t>(whole.coverage.runs) - 1);
  EXPECT_EQ(cut.coverage.cut_off, 1);
  EXPECT_EQ(cut.coverage.runs, whole.coverage.runs - 1);
  EXPECT_EQ(orders_of(1, static_cast<std::uint64_t>(whole.coverage.runs)).coverage.cut_off, 0);
}

// A fault of a pipeline is found, and replays from the answers that were written down.
TEST(EveryOrderTest, AFailureReplays) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.part != MutantPart::kPipeline || mutant.name != "take received: drop") continue;
    const Campaign campaign = orders_of(100, 50, mutant);
    ASSERT_TRUE(campaign.failure.has_value());
    EXPECT_TRUE(try_spec(campaign.failure->spec).has_value());
    return;
  }
  FAIL() << "no such mutant";
}

}  // namespace
}  // namespace ferry::verify
