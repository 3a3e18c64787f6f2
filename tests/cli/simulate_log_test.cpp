// `ferry simulate --log`: a file that `ferry check` has nothing against, whatever the policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class SimulateLogTest : public PlanFolder {
 protected:
  static std::string simulate(const std::string& more) {
    return "simulate blocks.jsonl --card tiny.toml " + more;
  }
  void expect_clean(const std::string& policy) const {
    const Result checked = ferry("check run.jsonl");
    EXPECT_EQ(checked.code, kOk) << policy << "\n" << checked.out;
    EXPECT_NE(checked.out.find(": 0 violations"), std::string::npos) << checked.out;
  }
};

TEST_F(SimulateLogTest, EveryPolicyIsClean) {
  for (const std::string policy : {"keep", "offload-all", "offload", "prefetch", "offload-some",
                                   "checkpoint", "checkpoint-nth", "checkpoint-offload", "mixed"}) {
    const Result simulated = ferry(simulate("--budget 100MiB --log run.jsonl --policy " + policy));
    EXPECT_TRUE(simulated.code == kOk || simulated.code == kDoesNotFit) << simulated.err;
    EXPECT_EQ(simulated.out, ferry(simulate("--budget 100MiB --policy " + policy)).out);
    const std::string log = read("run.jsonl");
    EXPECT_GT(std::count(log.begin(), log.end(), '\n'), 50) << policy;
    expect_clean(policy);
    if (policy != "keep" && policy != "offload-all") continue;
    const bool moves = policy == "offload-all";
    EXPECT_EQ(log.find("\"name\":\"reload\"") != std::string::npos, moves) << policy;
  }
}

TEST_F(SimulateLogTest, APlanIsOneRun) {
  ASSERT_EQ(ferry("plan chain.jsonl --card tiny.toml --policy offload -o a.plan").code, kOk);
  EXPECT_EQ(ferry("simulate chain.jsonl --card tiny.toml --plan a.plan --log run.jsonl").code, kOk);
  const std::string of_the_plan = read("run.jsonl");
  EXPECT_EQ(ferry("simulate chain.jsonl --card tiny.toml --policy offload --log run.jsonl").code,
            kOk);
  EXPECT_EQ(read("run.jsonl"), of_the_plan);
  expect_clean("plan");
}

TEST_F(SimulateLogTest, SeveralPoliciesAreRefused) {
  const std::string message = "--log: expected with --plan or one --policy";
  expect_refused(simulate("--log run.jsonl"), message);
  expect_refused(simulate("--policy keep,checkpoint --log run.jsonl"), message);
  EXPECT_FALSE(exists("run.jsonl"));
  EXPECT_EQ(ferry(simulate("--policy keep --log none/run.jsonl")).code, kResourceMissing);
}

}  // namespace
}  // namespace ferry::cli
