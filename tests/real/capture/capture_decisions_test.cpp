// A captured step makes the same decisions on the simulated device as it does on the CPU: whatever
// the model, the options, and the plan.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "formats/decision_log.h"
#include "formats/plan.h"
#include "formats/plan_options.h"
#include "tests/real/capture/models.h"
#include "tests/real/capture/step.h"

namespace ferry::real::capture {
namespace {

struct NamedOptions {
  const char* name;
  CoreOptions options;
};

std::vector<NamedOptions> all_options() {
  std::vector<NamedOptions> all;
  const auto add = [&](const char* name, CoreOptions options, auto set) {
    set(options);
    all.push_back({name, std::move(options)});
  };
  add("defaults", {}, [](CoreOptions&) {});
  add("everything moves at once", {}, [](CoreOptions& o) {
    o.window_tensors = 1;
    o.min_bytes = 0;
  });
  add("small window, prefetch and hold", {}, [](CoreOptions& o) {
    o.window_bytes = 8192;
    o.prefetch_bytes = 8192;
    o.hold_bytes = 4096;
  });
  add("no window, no hold", {}, [](CoreOptions& o) {
    o.window_bytes = 0;
    o.hold_bytes = 0;
  });
  add("no prefetch", {}, [](CoreOptions& o) {
    o.window_tensors = 1;
    o.prefetch_bytes = 0;
  });
  add("the copy stream's pool", {}, [](CoreOptions& o) {
    o.reload_pool = ReloadPool::kCopyStream;
    o.window_tensors = 2;
    o.prefetch_bytes = 16384;
  });
  add("TRL's", trl_options(), [](CoreOptions&) {});
  add("copies on the compute stream", {}, [](CoreOptions& o) {
    o.copy_streams = CopyStreams::kNone;
    o.min_bytes = 0;
  });
  return all;
}

class SameDecisionsTest : public ::testing::TestWithParam<NamedStep> {};

TEST_P(SameDecisionsTest, UnderAllOptions) {
  torch::manual_seed(1);
  const Step step = GetParam().make();
  const Program program = capture_of(step);
  std::size_t decisions = 0;
  for (const auto& [name, options] : all_options()) {
    const auto real = run_real(step, options);
    decisions += real.size();
    EXPECT_EQ(difference(real, run_simulated(program, options)), "") << name;
  }
  EXPECT_GT(decisions, 0u);
  if (HasFailure()) std::cerr << to_text(program);
}

TEST_P(SameDecisionsTest, UnderAPlan) {
  torch::manual_seed(1);
  const Step step = GetParam().make();
  const Program program = capture_of(step);
  const Plan plan = every_other_group(program);
  const auto real = run_real(step, Offload(plan, OffloadOptions().decisions(true)));
  EXPECT_EQ(difference(real, run_simulated(program, to_options(plan).value())), "");
}

// The comparison sees a core that decides otherwise: each of these rules is one decision.
TEST(SameDecisions, AnotherCoreDecidesOtherwise) {
  CoreOptions options;
  options.window_tensors = 2;
  options.prefetch_bytes = 8192;
  options.min_bytes = 0;
  for (const Rule rule :
       {Rule::kShare, Rule::kShareTarget, Rule::kBoundStash, Rule::kExempt, Rule::kBoundReloads}) {
    std::size_t different = 0;
    for (const auto& [name, make] : all_steps()) {
      torch::manual_seed(1);
      const Step step = make();
      const auto real = run_real(step, options);
      const Program program = capture_of(step);
      const auto other = run_simulated(program, options, Rules::without(rule)).decisions;
      EXPECT_EQ(run_simulated(program, options).decisions, real) << name;
      different += other != real;
    }
    EXPECT_GT(different, 0u) << ferry::name(rule);
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, SameDecisionsTest, ::testing::ValuesIn(all_steps()), name_of);

}  // namespace
}  // namespace ferry::real::capture
