// What the rows of the shipped programs promise, on every shipped card.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "formats/program_file.h"
#include "plan/planner.h"
#include "scenarios/programs.h"

namespace ferry::plan {
namespace {

class ShippedRows
    : public ::testing::TestWithParam<std::tuple<std::string /*program*/, std::string /*card*/>> {
 protected:
  ShippedRows()
      : program_(load_program(find_program(std::get<0>(GetParam())))),
        hardware_(find_hardware(std::get<1>(GetParam()))) {}

  PlanResult rows(std::vector<Policy> policies) const {
    PlanRequest request;
    request.policies = std::move(policies);
    request.budget_bytes = hardware_.memory_bytes;
    request.check = false;
    return plan(program_, hardware_, request);
  }
  // A step whose kernels run one after the other, whose host launches ahead, and whose copies cross
  // the link at its best rate takes no less.
  sim::Time bound_ns(std::int64_t out_bytes, std::int64_t back_bytes) const {
    const sim::Time compute_ns = sim::simulate(program_, hardware_, {}).compute_ns;
    return std::max({compute_ns, out_bytes * 1000 / hardware_.link.d2h_alone,
                     back_bytes * 1000 / hardware_.link.h2d_alone});
  }

  const Program program_;
  const Hardware hardware_;
};

// The row went by time alone: of Llama's 56 GiB 5 came back, and it needed more memory than keep.
TEST_P(ShippedRows, PrefetchBringsBackAllThatItMovesAtFullSpeed) {
  const PlanResult result = rows({Policy::kKeep, Policy::kPrefetch});
  const PolicyRow& keep = result.rows[0];
  const sim::Simulation& run = result.rows[1].simulation;
  EXPECT_TRUE(run.errors.empty());
  EXPECT_EQ(run.h2d_bytes, run.d2h_bytes);
  EXPECT_EQ(run.statistics.vain_count, 0);
  EXPECT_FALSE(result.rows[1].useless);
  const sim::Time bound = bound_ns(run.d2h_bytes, run.h2d_bytes);
  if (result.rows[1].fits) {
    EXPECT_LE(run.step_ns, bound + bound * 2 / 100);
  } else {
    EXPECT_EQ(program_.name, "llama3-8b");  // whose parameters alone are more than the card has
    EXPECT_EQ(hardware_.name, "rtx4090");
  }
  // Nothing of the U-Net's can leave and come back unnoticed on a fast card: its first storages,
  // which are needed back last, are the largest.
  if (program_.name == "unet" && hardware_.name != "rtx4090") {
    EXPECT_EQ(run.d2h_bytes, 0);
  } else {
    EXPECT_GT(run.d2h_bytes, 0);
    EXPECT_LT(run.device_reserved_bytes, keep.simulation.device_reserved_bytes);
  }
  RecordProperty("step_ns", std::to_string(run.step_ns));
}

INSTANTIATE_TEST_SUITE_P(All, ShippedRows,
                         ::testing::Combine(::testing::Values("gpt2", "llama3-8b", "unet"),
                                            ::testing::Values("a100", "h100", "h200", "rtx4090")),
                         [](const auto& each) {
                           std::string name =
                               std::get<0>(each.param) + "_on_" + std::get<1>(each.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace ferry::plan
