// Checkpoints of several threads share the CPU's generator: what they draw at once nobody can have
// again, and that is an error; what they draw in turns comes back, even where they recompute at
// once.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <barrier>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "ferry/checkpoint.h"

namespace ferry {
namespace {

// Two threads, each in a call of `run`, with its number.
std::array<std::string, 2> at_once(const std::function<void(int)>& run) {
  std::array<std::string, 2> errors;
  const auto call = [&](int i) {
    try {
      run(i);
    } catch (const CheckpointError& error) {
      errors[static_cast<std::size_t>(i)] = error.what();
    }
  };
  std::thread other(call, 1);
  call(0);
  other.join();
  return errors;
}

class SharedDraws : public ::testing::TestWithParam<bool> {
 protected:
  CheckpointOptions options() const { return CheckpointOptions().reentrant(GetParam()); }

  // Both meet within their functions, before and after the draw.
  std::array<std::string, 2> forwards_at_once(bool draws, bool preserves) {
    std::barrier meet(2);
    return at_once([&](int) {
      const auto function = [&](const torch::Tensor& x) {
        meet.arrive_and_wait();
        const torch::Tensor y = draws ? torch::dropout(x, 0.5, /*train=*/true) : x.sin();
        meet.arrive_and_wait();
        return y;
      };
      checkpoint(options().preserve_rng_state(preserves), function,
                 torch::ones({64}, torch::requires_grad()));
    });
  }
};

TEST_P(SharedDraws, ThoseThatDrawAtOnceAreTold) {
  for (int round = 0; round < 20; ++round) {
    const auto [one, other] = forwards_at_once(/*draws=*/true, /*preserves=*/true);
    EXPECT_NE((one + other).find("drew random numbers"), std::string::npos);
  }
}

TEST_P(SharedDraws, NobodyIsToldWhereNothingIsDrawnOrReplayed) {
  for (int round = 0; round < 20; ++round) {
    for (const bool draws : {false, true}) {
      const auto [one, other] = forwards_at_once(draws, /*preserves=*/!draws);
      EXPECT_EQ(one + other, "");
    }
  }
}

TEST_P(SharedDraws, WhatWasDrawnInTurnsIsRecomputedAtOnce) {
  for (int round = 0; round < 20; ++round) {
    std::barrier meet(2);
    std::array<torch::Tensor, 2> x;
    std::array<torch::Tensor, 2> y;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto function = [&meet](const torch::Tensor& input) {
        if (is_recomputing()) meet.arrive_and_wait();
        const torch::Tensor half = torch::dropout(input, 0.5, /*train=*/true);
        if (is_recomputing()) meet.arrive_and_wait();
        return half * input;
      };
      x[i] = torch::full({64}, 3.0, torch::requires_grad());
      std::thread([&] { y[i] = checkpoint(options(), function, x[i]); }).join();
    }
    torch::manual_seed(round);
    const auto errors = at_once([&](int i) { y[static_cast<std::size_t>(i)].sum().backward(); });
    EXPECT_EQ(errors[0] + errors[1], "");
    for (std::size_t i = 0; i < 2; ++i) {
      // y = 2 x x or 0, by what was drawn.
      EXPECT_TRUE(torch::equal(x[i].grad(), 2 * y[i].detach() / x[i].detach()));
    }
    const torch::Tensor after = torch::rand({1});
    torch::manual_seed(round);
    EXPECT_TRUE(torch::equal(after, torch::rand({1}))) << "recomputes moved the generator on";
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, SharedDraws, ::testing::Bool(), [](const auto& reentrant) {
  return std::string(reentrant.param ? "Reentrant" : "NonReentrant");
});

}  // namespace
}  // namespace ferry
