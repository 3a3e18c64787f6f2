// Stages on the CPU that draw random numbers, several at once: a recompute drops what forward
// dropped, and a seed says what that is.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ferry/pipe.h"
#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

constexpr int kRounds = 60;
constexpr std::int64_t kWide = 64;

// What a stage multiplies by 0 or 2: of a size at which nothing is rounded.
using Mask = std::function<Tensor(const Tensor&)>;
const std::vector<std::pair<std::string, Mask>> kMasks = {
    {"Dropout", [](const Tensor& x) { return torch::dropout(x, 0.5, true); }},
    // An op that takes no generator.
    {"Rand", [](const Tensor& x) { return x * (torch::rand(x.sizes()) < 0.5) * 2; }},
};

torch::nn::Sequential chain(const Mask& mask) {
  torch::nn::Sequential layers;
  for (int i = 0; i < 4; ++i) {
    layers->push_back(layer({}, {}, [mask](LayerImpl& self, Tensor x) {
      for (int k = 0; k < 8; ++k) mask(torch::ones({64}));  // others draw meanwhile
      return mask(x) * self.w / 2;
    }));
  }
  return layers;
}

class PipeRandom : public ::testing::TestWithParam<std::pair<std::string, Mask>> {
 protected:
  PipeRandom()
      : pipe(chain(GetParam().second), PipeOptions()
                                           .balance({1, 1, 1, 1})
                                           .devices(std::vector<torch::Device>(4, torch::kCPU))
                                           .microbatches(4)
                                           .checkpoint(CheckpointMode::kAlways)) {}
  // y is the product of its masks, and of each weight by a half. All weights are 2, so a weight's
  // gradient is the sum of y by 2: where backward had other masks than forward, it is not.
  void expect_right(const Tensor& sum_of_y, int round) {
    for (const Tensor& weight : pipe.parameters()) {
      EXPECT_TRUE(torch::equal(weight.grad() * 2, sum_of_y)) << "round " << round;
      weight.mutable_grad() = Tensor();
    }
  }
  const Tensor x = torch::ones({8, kWide}, torch::kFloat64);
  Pipe pipe;
};

TEST_P(PipeRandom, ForwardAndABackwardOfYourOwn) {
  for (int round = 0; round < kRounds; ++round) {
    const Tensor sum = pipe.forward(x).sum();
    sum.backward();
    expect_right(sum.detach(), round);
  }
}

TEST_P(PipeRandom, AStepByASchedule) {
  for (int round = 0; round < kRounds; ++round) {
    const Tensor loss = pipe.step(x, x, [&](const Tensor& y, const Tensor&) { return y.sum(); });
    expect_right(loss, round);
  }
}

TEST_P(PipeRandom, TheSeedSaysWhatIsDropped) {
  Tensors seen;
  for (int round = 0; round < 10; ++round) {
    torch::manual_seed(5);
    seen = {pipe.forward(x), pipe.forward(x), torch::rand({3})};
    torch::manual_seed(5);
    EXPECT_TRUE(same({pipe.forward(x), pipe.forward(x), torch::rand({3})}, seen));
  }
  EXPECT_FALSE(seen[0].equal(seen[1])) << "the caller's generator moves on";
}

INSTANTIATE_TEST_SUITE_P(Masks, PipeRandom, ::testing::ValuesIn(kMasks),
                         [](const auto& mask) { return mask.param.first; });

TEST(PipeNotRandom, AModelWithoutRandomNumbersLeavesTheGenerator) {
  Pipe pipe(chain([](const Tensor& x) { return x; }),
            PipeOptions().balance({2, 2}).devices({torch::kCPU, torch::kCPU}));
  torch::manual_seed(5);
  const Tensor expected = torch::rand({3});
  torch::manual_seed(5);
  pipe.forward(torch::ones({8, kWide}, torch::kFloat64)).sum().backward();
  EXPECT_TRUE(torch::rand({3}).equal(expected));
}

}  // namespace
}  // namespace ferry
