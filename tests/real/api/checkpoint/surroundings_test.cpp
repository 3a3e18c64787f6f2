// A recompute finds the random numbers and the autocast of forward, and leaves both as they were.
#include "ferry/checkpoint.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

TEST(Checkpoint, RandomNumbersAreThoseOfForwardAndGoOnAsIfNothingHadRun) {
  const auto step = [](bool checkpointed) {
    const Tensor x = leaf({64});
    torch::manual_seed(7);
    const auto block = [](const Tensor& in) {
      return torch::dropout(torch::dropout(in.exp(), 0.5, true).sin(), 0.3, true).exp();
    };
    const Tensor y = checkpointed ? checkpoint(block, x) : block(x);
    const Tensor between = torch::rand({4});
    y.sum().backward();
    return Tensors{y.detach(), x.grad(), between, torch::rand({4}), torch::randn({3})};
  };
  EXPECT_TRUE(same(step(false), step(true)));
}

TEST(Checkpoint, RandomNumbersOfNestedCheckpointsAreForwardsToo) {
  const auto step = [](bool checkpointed) {
    const auto run = [checkpointed](const auto& block, const Tensor& in) {
      return checkpointed ? checkpoint(block, in) : block(in);
    };
    const auto drop = [](const Tensor& in) { return torch::dropout(in.exp(), 0.5, true).sin(); };
    const Tensor x = leaf({64});
    torch::manual_seed(7);
    const Tensor y =
        run([&](const Tensor& in) { return drop(run(drop, drop(in))) * run(drop, in); }, x);
    y.sum().backward();
    return Tensors{y.detach(), x.grad(), torch::rand({4})};
  };
  EXPECT_TRUE(same(step(false), step(true)));
}

TEST(Checkpoint, SurroundingsAreRestoredWhereARecomputeThrows) {
  const Tensor y = checkpoint(
      [](const Tensor& in) {
        if (is_recomputing()) throw std::domain_error("mine");
        return torch::dropout(in, 0.5, true).exp();
      },
      leaf({8}));
  at::autocast::set_autocast_enabled(at::kCPU, true);
  torch::manual_seed(3);
  EXPECT_TRUE(throws<std::domain_error>("mine", [&] { y.sum().backward(); }));
  EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_FALSE(is_checkpointing());
  const Tensor after = torch::rand({4});
  torch::manual_seed(3);
  EXPECT_TRUE(same(after, torch::rand({4})));
}

TEST(Checkpoint, RandomNumbersMayBeLeftAlone) {
  const Tensor x = leaf({1000});
  const Tensor y = checkpoint(
      CheckpointOptions().preserve_rng_state(false),
      [](const Tensor& in) { return torch::dropout(in, 0.5, true); }, x);
  y.sum().backward();
  EXPECT_FALSE(same((y.detach() != 0).to(torch::kFloat64), (x.grad() != 0).to(torch::kFloat64)));
}

class Autocast {
 public:
  explicit Autocast(bool enabled) {
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(at::kCPU, enabled);
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

TEST(Checkpoint, AutocastIsForwards) {
  const auto step = [](bool checkpointed, bool around_backward) {
    torch::manual_seed(5);
    const Tensor x = torch::randn({8, 8}, torch::requires_grad());
    const Tensor w = torch::randn({8, 8}, torch::requires_grad());
    const auto block = [w](const Tensor& in) {
      EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
      return in.matmul(w).tanh().matmul(w).sin();
    };
    std::optional<Autocast> autocast(std::in_place, true);
    const Tensor y = checkpointed ? checkpoint(block, x) : block(x);
    if (!around_backward) autocast.reset();
    y.sum().backward();
    EXPECT_EQ(at::autocast::is_autocast_enabled(at::kCPU), around_backward);
    return Tensors{y.detach(), x.grad(), w.grad()};
  };
  for (const bool around : {false, true}) {
    const Tensors expected = step(false, around);
    EXPECT_EQ(expected[0].dtype(), torch::kBFloat16);
    EXPECT_TRUE(same(expected, step(true, around)));
  }
}

}  // namespace
}  // namespace ferry
