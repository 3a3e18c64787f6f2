#include "scenarios/policy.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(PolicyTest, PoliciesAreListedForPeople) {
  EXPECT_EQ(list_of_policies(),
            "keep, offload-all, offload, prefetch, checkpoint, checkpoint-nth, checkpoint-offload, "
            "checkpoint-offload-all, selective, knapsack, offload-some, mixed or best");
}

TEST(PolicyTest, EachIsFoundByItsName) {
  for (const PolicyEntry& each : kPolicies) {
    EXPECT_EQ(find_policy(each.name), each.policy) << each.name;
    EXPECT_EQ(name(each.policy), each.name);
    const bool checkpoints =
        each.name.starts_with("checkpoint") || each.name == "mixed" || each.name == "selective";
    EXPECT_EQ(is_for_segments(each.policy), checkpoints) << each.name;
  }
  EXPECT_EQ(find_policy("budget"), Policy::kOffloadSome);  // its name in earlier files
  EXPECT_EQ(find_policy("magic"), std::nullopt);
  EXPECT_EQ(find_policy("Keep"), std::nullopt);
}

}  // namespace
}  // namespace ferry
