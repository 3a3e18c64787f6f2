#include "ferry/hooks.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/torch.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/offload.h"
#include "tests/real/api/message.h"

// The semantics of torch.autograd.graph.saved_tensors_hooks, one behaviour a test.
namespace ferry {
namespace {

torch::Tensor leaf(std::vector<double> values = {1, 2, 3}) {
  return torch::tensor(values, torch::dtype(torch::kFloat64).requires_grad(true));
}
constexpr auto kIdentity = [](const torch::Tensor& x) { return x; };
TEST(SavedTensorsHooks, EachSaveIsPackedAndUnpacked) {
  int packed = 0, unpacked = 0;
  const auto a = leaf();
  {
    const SavedTensorsHooks hooks([&](const torch::Tensor& x) { return ++packed, x.clone(); },
                                  [&](const torch::Tensor& x) { return ++unpacked, x; });
    (a * a).sum().backward();
  }
  EXPECT_EQ(packed, 2);
  EXPECT_EQ(unpacked, 2);
  EXPECT_TRUE(a.grad().equal(2 * a.detach()));
}

TEST(SavedTensorsHooks, WhatUnpackReturnsIsWhatBackwardUses) {
  const auto a = leaf();
  const SavedTensorsHooks hooks([](const torch::Tensor& x) { return 2 * x; }, kIdentity);
  (a * a).sum().backward();
  EXPECT_TRUE(a.grad().equal(4 * a.detach()));
}

TEST(SavedTensorsHooks, AnyTypeCanBePacked) {
  struct Record {
    std::string name;
    std::unique_ptr<std::vector<double>> values;
  };
  const auto a = leaf();
  const SavedTensorsHooks hooks(
      [](const torch::Tensor& x) {
        const double* data = x.const_data_ptr<double>();
        return Record{"a", std::make_unique<std::vector<double>>(data, data + x.numel())};
      },
      [](const Record& record) { return torch::tensor(*record.values, torch::kFloat64); });
  (a * a).sum().backward();
  EXPECT_TRUE(a.grad().equal(2 * a.detach()));
}

TEST(SavedTensorsHooks, TheInnermostPairAloneApplies) {
  std::string story;
  const auto a = leaf();
  const auto noting = [&](char c) {
    return [&story, c](const torch::Tensor& x) { return story += c, x; };
  };
  const SavedTensorsHooks outer(noting('o'), kIdentity);
  {
    const SavedTensorsHooks inner(noting('i'), kIdentity);
    a.exp();
  }
  a.exp();
  {
    const NoSavedTensorsHooks none;
    a.exp();
  }
  EXPECT_EQ(story, "io");
}

TEST(SavedTensorsHooks, TheGraphOutlivesTheGuard) {
  const auto a = leaf();
  torch::Tensor y;
  {
    const SavedTensorsHooks hooks(kIdentity, [](const torch::Tensor& x) { return 3 * x; });
    y = (a * a).sum();
  }
  y.backward();
  EXPECT_TRUE(a.grad().equal(6 * a.detach()));
}

TEST(SavedTensorsHooks, PackRunsWithoutGradMode) {
  const SavedTensorsHooks hooks(
      [](const torch::Tensor& x) {
        EXPECT_FALSE(torch::GradMode::is_enabled());
        return x;
      },
      kIdentity);
  leaf().exp().sum().backward();
}

TEST(SavedTensorsHooks, WrappedNumbersAndUndefinedTensorsAreNotPacked) {
  int packed = 0;
  const auto a = leaf();
  const SavedTensorsHooks hooks([&](const torch::Tensor& x) { return ++packed, x; }, kIdentity);
  const auto y = a * 3;
  EXPECT_EQ(packed, 0);
  const auto x = torch::ones({1, 2, 4}, torch::requires_grad());
  const auto z = torch::conv1d(x, torch::ones({2, 2, 1}));  // without a bias
  const int saved = packed;
  EXPECT_EQ(saved, 2);
  y.sum().backward();
  z.sum().backward();
}

TEST(SavedTensorsHooks, WhatNeedsNoGradientIsNotPacked) {
  int packed = 0;
  const SavedTensorsHooks hooks([&](const torch::Tensor& x) { return ++packed, x; }, kIdentity);
  const auto y = torch::ones({3}) * torch::ones({3});
  EXPECT_EQ(packed, 0);
}

TEST(SavedTensorsHooks, APackThatWritesItsInputIsRefused) {
  const auto a = leaf();
  const SavedTensorsHooks hooks([](const torch::Tensor& x) { return x.mul_(2); }, kIdentity);
  const auto b = (a + 1);
  EXPECT_NE(message([&] { b.exp(); }).find("pack hook is modifying its input in place"),
            std::string::npos);
}

struct Mine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(SavedTensorsHooks, AnErrorInPackLeavesTheOpWithItsTypeAndTheNextStepWorks) {
  const auto a = leaf();
  bool fail = true;
  const SavedTensorsHooks hooks(
      [&](const torch::Tensor& x) {
        if (fail) throw Mine("pack");
        return x;
      },
      kIdentity);
  EXPECT_THROW(a.exp(), Mine);
  EXPECT_TRUE(torch::GradMode::is_enabled());
  fail = false;
  a.exp().sum().backward();
  EXPECT_TRUE(a.grad().equal(a.detach().exp()));
}

TEST(SavedTensorsHooks, AnErrorInUnpackLeavesBackwardWithItsTypeAndTheNextStepWorks) {
  const auto a = leaf();
  bool fail = true;
  const SavedTensorsHooks hooks(kIdentity, [&](const torch::Tensor& x) {
    if (fail) throw Mine("unpack");
    return x;
  });
  const auto y = a.exp().sum();
  EXPECT_THROW(y.backward({}, /*retain_graph=*/true), Mine);
  fail = false;
  y.backward();
  EXPECT_TRUE(a.grad().equal(a.detach().exp()));
}

TEST(SavedTensorsHooks, AnUndefinedTensorFromUnpackIsAnError) {
  const auto a = leaf();
  const SavedTensorsHooks hooks(kIdentity, [](const torch::Tensor&) { return torch::Tensor(); });
  const auto y = a.exp().sum();
  EXPECT_NE(message([&] { y.backward(); }).find("expected to be a Tensor"), std::string::npos);
}

// An output that its own node packs as it is would keep its graph alive for ever.
TEST(SavedTensorsHooks, NoCycleOfReferences) {
  const auto alive = std::make_shared<int>(0);
  struct Held {
    torch::Tensor tensor;
    std::shared_ptr<int> token;
  };
  {
    const SavedTensorsHooks hooks(
        [&](const torch::Tensor& x) {
          return Held{x, alive};
        },
        [](const Held& held) { return held.tensor; });
    const auto y = leaf().exp();  // saves its output
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(SavedTensorsHooks, PackedDiesWithTheNode) {
  const auto alive = std::make_shared<int>(0);
  const auto a = leaf();
  torch::Tensor y;
  {
    const SavedTensorsHooks hooks([&](const torch::Tensor& x) { return std::make_pair(x, alive); },
                                  [](const auto& packed) { return packed.first; });
    y = a.exp().sum();
  }
  y.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(alive.use_count(), 2);
  y.backward();
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(SavedTensorsHooks, WrittenInPlaceAfterItsSaveIsAnError) {
  const auto a = leaf();
  const SavedTensorsHooks hooks([](const torch::Tensor& x) { return x; }, kIdentity);
  const auto b = a + 1;
  const auto y = (b * b).sum();
  b.mul_(2);
  EXPECT_THROW(y.backward(), ModifiedInPlace);
}

TEST(SavedTensorsHooks, DoubleBackwardGoesThroughThemToo) {
  int packed = 0;
  const auto a = leaf();
  const SavedTensorsHooks hooks([&](const torch::Tensor& x) { return ++packed, x.clone(); },
                                kIdentity);
  const auto y = (a * a * a).sum();
  const int forward = packed;
  const auto g = torch::autograd::grad({y}, {a}, {}, true, /*create_graph=*/true)[0];
  EXPECT_GT(packed, forward);
  EXPECT_TRUE(torch::autograd::grad({g.sum()}, {a})[0].allclose(6 * a.detach()));
}

TEST(SavedTensorsHooks, AThreadHasItsOwnGuards) {
  std::atomic<int> packed = 0;
  const SavedTensorsHooks hooks([&](const torch::Tensor& x) { return ++packed, x; }, kIdentity);
  std::thread([] { leaf().exp().sum().backward(); }).join();
  EXPECT_EQ(packed, 0);
}

TEST(SavedTensorsHooks, DisabledHooksRefuseAPairWithTheirMessage) {
  {
    const DisableSavedTensorsHooks disabled("not here");
    EXPECT_EQ(message([] { const SavedTensorsHooks hooks(kIdentity, kIdentity); }), "not here");
  }
  const SavedTensorsHooks hooks(kIdentity, kIdentity);
  EXPECT_EQ(message([] { const DisableSavedTensorsHooks late("too late"); }), "too late");
}

TEST(SavedTensorsHooksDeathTest, EndingAGuardThatIsNotTheInnermostStopsTheProgram) {
  auto outer = std::make_unique<SavedTensorsHooks>(kIdentity, kIdentity);
  const auto inner = std::make_unique<SavedTensorsHooks>(kIdentity, kIdentity);
  EXPECT_DEATH(outer.reset(), "");
}

TEST(RegisterHooks, OneSavedTensorOfANode) {
  const auto a = leaf();
  const auto y = a * a;
  auto* const node = dynamic_cast<torch::autograd::generated::MulBackward0*>(y.grad_fn().get());
  ASSERT_NE(node, nullptr);
  register_hooks(
      node->self_, [](const torch::Tensor& x) { return 10 * x; }, kIdentity);
  EXPECT_NE(message([&] {
              register_hooks(node->self_, kIdentity, kIdentity);
            }).find("hooks have already been set"),
            std::string::npos);
  y.sum().backward();
  EXPECT_TRUE(a.grad().equal(11 * a.detach()));
  EXPECT_NE(message([&] {
              register_hooks(node->other_, kIdentity, kIdentity);
            }).find("after it has been freed"),
            std::string::npos);
}

// LibTorch has the hooks by then, with nothing packed: backward went through a null pointer.
TEST(RegisterHooks, APackThatThrowsLeavesTheTensorAsItWas) {
  const auto a = leaf();
  const auto y = a * a;
  auto* const node = dynamic_cast<torch::autograd::generated::MulBackward0*>(y.grad_fn().get());
  const auto fails = [](const torch::Tensor&) -> torch::Tensor { throw Mine("pack"); };
  EXPECT_THROW(register_hooks(node->self_, fails, kIdentity), Mine);
  const auto first = torch::autograd::grad({y.sum()}, {a}, {}, /*retain_graph=*/true)[0];
  EXPECT_TRUE(first.equal(2 * a.detach()));
  register_hooks(
      node->self_, [](const torch::Tensor& x) { return 10 * x; }, kIdentity);
  y.sum().backward();
  EXPECT_TRUE(a.grad().equal(11 * a.detach()));
}

TEST(RegisterHooks, APackThatThrowsForAnOutputLeavesItAsItWas) {
  const auto a = leaf();
  const auto y = a.exp();
  auto* const node = dynamic_cast<torch::autograd::generated::ExpBackward0*>(y.grad_fn().get());
  const auto fails = [](const torch::Tensor&) -> torch::Tensor { throw Mine("pack"); };
  EXPECT_THROW(register_hooks(node->result_, fails, kIdentity), Mine);
  y.sum().backward();
  EXPECT_TRUE(a.grad().equal(a.detach().exp()));
}

TEST(RegisterHooks, NotWhereDefaultHooksPackedIt) {
  const auto a = leaf();
  const SavedTensorsHooks hooks(kIdentity, kIdentity);
  const auto y = a * a;
  auto* const node = dynamic_cast<torch::autograd::generated::MulBackward0*>(y.grad_fn().get());
  EXPECT_NE(message([&] {
              register_hooks(node->self_, kIdentity, kIdentity);
            }).find("only one pair of hooks is allowed"),
            std::string::npos);
}

constexpr auto kMutable = [count = 0](const torch::Tensor& x) mutable { return ++count, x; };
constexpr auto kCount = [](const torch::Tensor& x) { return x.numel(); };
constexpr auto kNothing = [](const torch::Tensor&) {};
constexpr auto kOfNumber = [](std::int64_t size) { return torch::zeros({size}); };
template <class Pack, class Unpack>
constexpr bool pair(Pack, Unpack) {
  return SavedTensorsPair<Pack, Unpack>;
}
static_assert(pair(kIdentity, kIdentity));
static_assert(pair(kCount, kOfNumber));
static_assert(pair(kMutable, kIdentity), "pack runs on one thread");
static_assert(!pair(kIdentity, kMutable), "unpack runs on several");
static_assert(!pair(kCount, kIdentity), "unpack takes what pack returns");
static_assert(!pair(kIdentity, kCount), "unpack returns a tensor");
static_assert(!pair(kNothing, kIdentity), "pack returns something");

TEST(SavedTensorsHooks, WhoseHooksAreInForceCanBeAsked) {
  using enum HooksInForce;
  EXPECT_EQ(saved_tensor_hooks_in_force(), kNone);
  const SavedTensorsHooks hooks(kIdentity, kIdentity);
  EXPECT_EQ(saved_tensor_hooks_in_force(), kPair);
  {
    const OffloadGuard guard;
    EXPECT_EQ(saved_tensor_hooks_in_force(), kOffload);
    checkpoint(
        [](const torch::Tensor& x) {
          EXPECT_EQ(saved_tensor_hooks_in_force(), kCheckpoint);
          const NoOffloadGuard none;
          EXPECT_EQ(saved_tensor_hooks_in_force(), kNone);
          return x * 2;
        },
        leaf());
    std::thread([] { EXPECT_EQ(saved_tensor_hooks_in_force(), kNone); }).join();
  }
  EXPECT_EQ(saved_tensor_hooks_in_force(), kPair);
  const NoSavedTensorsHooks none;
  EXPECT_EQ(saved_tensor_hooks_in_force(), kNone);
}

TEST(SavedTensorsHooks, NoHooksAreInForceWhileTheyAreDisabled) {
  const DisableSavedTensorsHooks disabled("off");
  EXPECT_EQ(saved_tensor_hooks_in_force(), HooksInForce::kNone);
}

}  // namespace
}  // namespace ferry
