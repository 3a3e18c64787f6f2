// Every rule of checkpoints is seen by a little model on LibTorch's autograd (checkpoint_cases.h),
// or listed with the reason why a CPU cannot show it.
#include <algorithm>
#include <map>
#include <string>

#include "real/tensors/torch_compute.h"
#include "tests/real/api/checkpoint/checkpoint_cases.h"

namespace ferry {
namespace {

struct OnTheCpu {
  using Device = real::TorchCompute;
  static constexpr c10::DeviceType kType = c10::kCPU;
  static Device device() { return {}; }
  static Tensor leaf(at::IntArrayRef shape) { return ferry::leaf(shape); }
};

const std::map<Rule, std::string>& cannot_show() {
  static const std::map<Rule, std::string> list = {
      {Rule::kForwardStream, "a CPU has one stream: the one forward started on is the current one"},
      {Rule::kKeepOutputs, "ferry::selective has no rules"},
      {Rule::kCheckOutputs, "ferry::selective has no rules"},
      {Rule::kLastPlain, "ferry::checkpoint_sequential has no rules"},
      {Rule::kRefuseLate, "a span of operators is no checkpoint"},
  };
  return list;
}

class CheckpointMutant : public ::testing::TestWithParam<Rule> {};

TEST_P(CheckpointMutant, IsCaughtOrListed) {
  const Rule rule = GetParam();
  const auto& cases = checkpoint_cases<OnTheCpu>();
  const auto known = cases.find(rule);
  ASSERT_EQ(known == cases.end(), cannot_show().contains(rule)) << name(rule);
  if (known == cases.end()) return;
  EXPECT_NO_THROW(EXPECT_TRUE(known->second(Rules())));
  EXPECT_FALSE(right(known->second, Rules::without(rule)));
}

// No rule says so: a checkpoint keeps nothing that it could ask.
TEST(CheckpointCases, WhatIsRecomputedMayBeWritten) {
  EXPECT_TRUE(what_is_recomputed_may_be_written<OnTheCpu>(Rules()));
}

INSTANTIATE_TEST_SUITE_P(Rules, CheckpointMutant, ::testing::ValuesIn(checkpoint_rules()),
                         [](const auto& tested) {
                           std::string text(name(tested.param));
                           std::replace(text.begin(), text.end(), ' ', '_');
                           return text;
                         });

}  // namespace
}  // namespace ferry
