// The rows of `prefetch` for the shipped programs on shipped cards keep the policy's promise.
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
  // Returns a lower bound on the step time: the longest of computing and of each direction's copies
  // at the link's full rate.
  sim::Time bound_ns(std::int64_t out_bytes, std::int64_t back_bytes) const {
    const sim::Time compute_ns = sim::simulate(program_, hardware_, {}).compute_ns;
    return std::max({compute_ns, out_bytes * 1000 / hardware_.link.d2h_alone,
                     back_bytes * 1000 / hardware_.link.h2d_alone});
  }

  const Program program_;
  const Hardware hardware_;
};

// Once the row was chosen by time alone. Llama then copied 56 GiB out and 5 GiB back, and needed
// more memory than keep.
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
    EXPECT_EQ(program_.name, "llama3-8b");  // its parameters alone exceed the card's memory
    EXPECT_EQ(hardware_.name, "rtx4090");
  }
  // On a fast card no copy of the U-Net can be hidden: its first storages, which backward needs
  // last, are the largest.
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
