// RReLU in training mode draws its noise into a tensor that LibTorch has saved by then. Each test
// is about a hook that looks when it is called.
#include "real/autograd/late_writes.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <stdexcept>

#include "real/autograd/torch_autograd.h"

namespace ferry::real {
namespace {

class Copied final : public Saved<at::Tensor> {
 public:
  explicit Copied(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  at::Tensor unpack() override { return tensor_; }

 private:
  at::Tensor tensor_;
};

using Look = std::function<void(const at::Tensor&)>;

class Copies final : public Hooks<at::Tensor> {
 public:
  explicit Copies(Look look = [](const at::Tensor&) {}) : look_(std::move(look)) {}
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override {
    look_(tensor);
    return std::make_unique<Copied>(tensor.clone());
  }

 private:
  Look look_;
};

HooksGuard<TorchAutograd> copying(const Look& look = [](const at::Tensor&) {}) {
  return {TorchAutograd(), std::make_shared<Copies>(look)};
}

at::Tensor input() {
  torch::manual_seed(3);
  return torch::randn({64}).set_requires_grad(true);
}

at::Tensor noisy(const at::Tensor& x) { return torch::rrelu(x, 0.1, 0.9, /*training=*/true); }
at::Tensor noisy_in_place(const at::Tensor& x) {
  at::Tensor y = x.clone();
  return torch::rrelu_(y, 0.1, 0.9, true);
}

TEST(LateWrites, AHookThatCopiesGetsTheNoiseThatWasDrawn) {
  for (const auto op : {&noisy, &noisy_in_place}) {
    const at::Tensor x = input();
    op(x).sum().backward();
    const at::Tensor y = input();
    const auto guard = copying();
    op(y).sum().backward();
    EXPECT_TRUE(y.grad().equal(x.grad()));
  }
}

TEST(LateWrites, WhatAPackThrowsLeavesTheOpWhichHasRun) {
  const at::Tensor x = input();
  at::Tensor y = x.clone();
  const auto guard = copying([](const at::Tensor&) { throw std::domain_error("full"); });
  EXPECT_THROW(torch::rrelu_(y, 0.1, 0.9, true), std::domain_error);
  EXPECT_FALSE(y.equal(x));
}

TEST(LateWrites, AfterAnOpThatRaisesNothingIsPackedLate) {
  int packs = 0;
  const auto guard = copying([&](const at::Tensor&) { ++packs; });
  EXPECT_THROW(torch::rrelu(input(), 0.9, 0.1, true), c10::Error);
  EXPECT_EQ(packs, 0);
  EXPECT_EQ(LatePacks::current(), nullptr);
}

TEST(LateWrites, PackRunsWithoutGradModeAndMayRunSuchAnOpItself) {
  bool grad = true;
  const auto guard = copying([&](const at::Tensor& tensor) {
    grad = c10::GradMode::is_enabled();
    noisy(tensor.detach());
  });
  const at::Tensor x = input();
  noisy(x).sum().backward();
  EXPECT_FALSE(grad);
  EXPECT_TRUE(x.grad().defined());
}

TEST(LateWrites, APackThatWritesToItsInputIsRefusedAsItIsElsewhere) {
  const auto guard = copying([](const at::Tensor& tensor) { at::Tensor(tensor.detach()).add_(1); });
  EXPECT_THROW(noisy(input()), c10::Error);
}

TEST(LateWrites, OtherOpsPackBeforeTheyRun) {
  bool written = false;
  at::Tensor x = torch::ones({3}).set_requires_grad(true), y = x.clone();
  const auto guard = copying([&](const at::Tensor& tensor) { written = !tensor.equal(x); });
  y.sin_();
  EXPECT_FALSE(written);
}

}  // namespace
}  // namespace ferry::real
