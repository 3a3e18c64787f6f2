// The reentrant variant; and checkpoints beside, around and inside offloading.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "ferry/hooks.h"
#include "ferry/offload.h"
#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

CheckpointOptions reentrant() { return CheckpointOptions().reentrant(true); }

TEST(Reentrant, GradientsAreTheSameBits) {
  const auto step = [](bool checkpointed) {
    const Tensor x = leaf({4, 4});
    const Tensor w = leaf({4, 4}, 2);
    torch::manual_seed(9);
    const auto block = [](const Tensor& a, const Tensor& b, double factor) {
      return torch::dropout(a.matmul(b).tanh() * factor, 0.5, true).matmul(b);
    };
    const Tensor y = checkpointed ? checkpoint(reentrant(), block, x, w, 1.5) : block(x, w, 1.5);
    const Tensor between = torch::rand({2});
    y.pow(2).sum().backward();
    return Tensors{y.detach(), x.grad(), w.grad(), between, torch::rand({2})};
  };
  EXPECT_TRUE(same(step(false), step(true)));
}

TEST(Reentrant, MakesNoGraphInForwardAndRunsTheWholeAgain) {
  int calls = 0;
  const Tensor x = leaf({3});
  const Tensor y = checkpoint(
      reentrant(),
      [&calls](const Tensor& in) {
        EXPECT_EQ(torch::GradMode::is_enabled(), calls == 1);
        EXPECT_EQ(is_recomputing(), calls == 1);
        const Tensor result = in.exp().sin();
        ++calls;
        return result;
      },
      x);
  y.sum().backward();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(throws<std::exception>("Trying to backward through the graph a second time",
                                     [&] { y.sum().backward(); }));
}

TEST(Reentrant, MissingGradientsAreZeros) {
  const Tensor x = leaf({3});
  const auto [a, b] = checkpoint(
      reentrant(), [](const Tensor& in) { return std::make_tuple(in.exp(), in.sin()); }, x);
  b.sum().backward();
  EXPECT_TRUE(same(x.grad(), x.detach().cos()));
}

TEST(Reentrant, OutputsMayBeInputsAndViewsOfThem) {
  const Tensor x = leaf({3});
  const auto [a, b, c, d] = checkpoint(
      reentrant(),
      [](const Tensor& in) {
        return std::array<Tensor, 4>{in, in.view({3, 1}), in.exp(),
                                     torch::ones({2}, torch::kInt64)};
      },
      x);
  EXPECT_FALSE(a.is_same(x));
  EXPECT_TRUE(a.requires_grad() && b.requires_grad() && c.requires_grad());
  EXPECT_FALSE(d.requires_grad());
  (a.sum() + b.sum() + c.sum()).backward();
  EXPECT_TRUE(same(x.grad(), x.detach().exp() + 2));
}

TEST(Reentrant, UndefinedArgumentsAndOutputs) {
  const Tensor x = leaf({3});
  const Tensors y = checkpoint(
      reentrant(),
      [](const Tensor& none, const Tensor& in) {
        return Tensors{Tensor(), in.exp(), none};
      },
      Tensor(), x);
  EXPECT_FALSE(y[0].defined());
  y[1].sum().backward();
  EXPECT_TRUE(same(x.grad(), x.detach().exp()));
}

TEST(Reentrant, RefusesBackwardsThatDoNotAccumulate) {
  const Tensor x = leaf({3});
  const auto y = [&] {
    return checkpoint(
               reentrant(), [](const Tensor& in) { return in.exp(); }, x)
        .sum();
  };
  const std::string text = "is incompatible with .grad() or passing an `inputs` parameter";
  EXPECT_TRUE(throws<Error>(text, [&] { torch::autograd::grad({y()}, {x}); }));
  EXPECT_TRUE(
      throws<Error>(text, [&] { y().backward({}, std::nullopt, false, std::vector<Tensor>{x}); }));
  EXPECT_NO_THROW(y().backward());
}

TEST(Reentrant, NeedsAnOutputThatRequiresGrad) {
  const Tensor x = leaf({3});
  const Tensor y = checkpoint(
      reentrant(), [](const Tensor& in) { return in.detach() * 2; }, x);
  EXPECT_TRUE(
      throws<Error>("none of output has requires_grad=True, this checkpoint() is not necessary",
                    [&] { y.sum().backward(); }));
}

struct Heard final : c10::WarningHandler {
  void process(const c10::Warning& warning) override { texts.emplace_back(warning.msg()); }
  std::vector<std::string> texts;
};

TEST(Reentrant, WarnsWhereNoInputRequiresGrad) {
  Heard heard;
  {
    const c10::WarningUtils::WarningHandlerGuard guard(&heard);
    const c10::WarningUtils::WarnAlways each_time(true);
    const Tensor y = checkpoint(
        reentrant(), [](const Tensor& in) { return in.exp(); }, torch::ones({3}));
    EXPECT_FALSE(y.requires_grad());
  }
  EXPECT_EQ(heard.texts, std::vector<std::string>{
                             "None of the inputs have requires_grad=True. Gradients will be None"});
}

// A program that warned at one checkpoint was silent about all others.
TEST(Reentrant, WarnsOnceForEachFunction) {
  Heard heard;
  {
    const c10::WarningUtils::WarningHandlerGuard guard(&heard);
    for (int step = 0; step < 3; ++step) {
      checkpoint(
          reentrant(), [](const Tensor& in) { return in.cos(); }, torch::ones({3}));
      checkpoint(
          reentrant(), [](const Tensor& in) { return in.tan(); }, torch::ones({3}));
    }
  }
  EXPECT_EQ(heard.texts.size(), 2u);
}

// Those inside others have no grad mode in forward, and warned in every one of their forwards.
TEST(Reentrant, NestedInEachOtherTheyWarnOnce) {
  Heard heard;
  {
    const c10::WarningUtils::WarningHandlerGuard guard(&heard);
    std::function<Tensor(const Tensor&)> nested = [](const Tensor& in) { return in.sin(); };
    for (int level = 0; level < 6; ++level) {
      nested = [inner = nested](const Tensor& in) {
        return checkpoint(reentrant(), inner, in * 1);
      };
    }
    for (int step = 0; step < 3; ++step) nested(leaf({3})).sum().backward();
  }
  EXPECT_LE(heard.texts.size(), 1u);
}

TEST(Reentrant, RefusesFunctionsThatReturnSomethingElse) {
  EXPECT_THROW(checkpoint(
                   reentrant(), [](const Tensor&) { return 3; }, leaf({3})),
               ValueError);
}

TEST(Reentrant, AnotherNumberOfOutputsIsAnError) {
  const Tensors y = checkpoint(
      reentrant(), [](const Tensor& in) { return Tensors(is_recomputing() ? 2 : 1, in.exp()); },
      leaf({3}));
  EXPECT_TRUE(throws("the function returned 1 tensors in the original forward, and 2",
                     [&] { y[0].sum().backward(); }));
}

Tensor levels(int depth, const Tensor& x) {
  if (depth == 0) return x.exp();
  return checkpoint(
      reentrant(), [depth](const Tensor& in) { return levels(depth - 1, in).sin(); }, x);
}

TEST(Reentrant, NestsDeeperThanTheEnginesLimit) {
  const Tensor x = leaf({2});
  levels(70, x).sum().backward();
  Tensor y = x.exp();
  for (int i = 0; i < 70; ++i) y = y.sin();
  EXPECT_TRUE(same(x.grad(), torch::autograd::grad({y.sum()}, {x})[0]));
}

TEST(Reentrant, NestsWithTheOtherVariant) {
  const auto step = [](int kind) {
    const Tensor x = leaf({3});
    const auto leafy = [](const Tensor& in) { return in.exp().sin(); };
    const auto block = [&](const Tensor& in) {
      if (kind == 0) return leafy(in).cos();
      return checkpoint(kind == 1 ? reentrant() : CheckpointOptions(), leafy, in).cos();
    };
    const Tensor y =
        kind == 0 ? block(x) : checkpoint(kind == 2 ? reentrant() : CheckpointOptions(), block, x);
    y.sum().backward();
    return x.grad();
  };
  EXPECT_TRUE(same(step(0), step(1)));
  EXPECT_TRUE(same(step(0), step(2)));
}

TEST(Reentrant, NothingOfItIsLeft) {
  for (const bool backward : {true, false}) {
    const Since since;
    auto owned = std::make_shared<int>(1);
    const std::weak_ptr<int> function = owned;
    Tensor y = checkpoint(
        reentrant(), [owned](const Tensor& in) { return in.exp(); }, leaf({3}));
    owned.reset();
    if (backward) y.sum().backward();
    y = Tensor();
    EXPECT_TRUE(function.expired());
    EXPECT_EQ(since.alive(), 0);
  }
}

// Offloading.

Offload eager() { return Offload(OffloadOptions().min_bytes(0).window(0).prefetch(0)); }

Tensor block(const Tensor& x, const Tensor& w) { return x.matmul(w).exp().sin().matmul(w); }

class Offloaded : public ::testing::Test {
 protected:
  Tensor x = leaf({8, 8});
  Tensor w = leaf({8, 8}, 2) * 0.1;
  Tensors expected = torch::autograd::grad({block(x.exp(), w).sum()}, {x});
  Offload offload = eager();

  void expect_right(const Tensor& y) {
    EXPECT_TRUE(same(torch::autograd::grad({y.sum()}, {x}), expected));
    EXPECT_TRUE(offload.empty());
  }
};

TEST_F(Offloaded, AroundACheckpointSeesItsInputsAlone) {
  Tensor y;
  {
    const OffloadGuard guard(offload);
    const Tensor in = x.exp();  // saves its result: one pack
    y = checkpoint(block, in, w);
  }
  EXPECT_EQ(offload.statistics().packs, 3);
  expect_right(y);
}

TEST_F(Offloaded, AroundACheckpointGetsWhatIsChosen) {
  Tensor y;
  const Since since;
  {
    const OffloadGuard guard(offload);
    y = checkpoint(CheckpointOptions().choices({SavedChoice::kRecompute, SavedChoice::kOffload,
                                                SavedChoice::kOffload, SavedChoice::kKeep}),
                   block, x.exp(), w);
  }
  EXPECT_EQ(since.passed_on(), 2);
  EXPECT_EQ(since.kept(), 1);
  EXPECT_EQ(offload.statistics().packs, 3 + 2);
  expect_right(y);
}

TEST_F(Offloaded, ChoicesThatKeepAllNeedNoRecompute) {
  const Since since;
  const Tensor y = checkpoint(CheckpointOptions().choices(std::vector(9, SavedChoice::kKeep)),
                              block, x.exp(), w);
  expect_right(y);
  EXPECT_EQ(since.recomputes(), 0);
}

TEST_F(Offloaded, InsideACheckpointWins) {
  int calls = 0;
  const Since since;
  const Tensor y = checkpoint(
      [&](const Tensor& a, const Tensor& b) {
        ++calls;
        const OffloadGuard guard(offload);
        return block(a, b);
      },
      x.exp(), w);
  EXPECT_EQ(since.saved(), 0);
  EXPECT_GT(offload.statistics().packs, 0);
  expect_right(y);
  EXPECT_EQ(calls, 1);
}

TEST_F(Offloaded, InsideIsPackedAgainWhereARecomputeReachesIt) {
  const Tensor y = checkpoint(
      [&](const Tensor& a, const Tensor& b) {
        Tensor middle;
        {
          const OffloadGuard guard(offload);
          middle = a.matmul(b).exp().sin();
        }
        return middle.matmul(b);
      },
      x.exp(), w);
  const auto packs = offload.statistics().packs;
  EXPECT_GT(packs, 0);
  expect_right(y);
  EXPECT_EQ(offload.statistics().packs, 2 * packs);
}

TEST_F(Offloaded, BesideACheckpoint) {
  Tensor middle;
  {
    const OffloadGuard guard(offload);
    middle = x.exp().matmul(w).exp();
  }
  expect_right(
      checkpoint([](const Tensor& a, const Tensor& b) { return a.sin().matmul(b); }, middle, w));
}

TEST_F(Offloaded, AroundNestedCheckpoints) {
  Tensor y;
  {
    const OffloadGuard guard(offload);
    y = checkpoint([](const Tensor& a, const Tensor& b) { return checkpoint(block, a.exp(), b); },
                   x, w);
  }
  EXPECT_EQ(offload.statistics().packs, 2);
  expect_right(y);
}

TEST_F(Offloaded, AUsersHooksAroundSeeTheInputs) {
  int packed = 0;
  Tensor y;
  {
    const SavedTensorsHooks hooks([&](const Tensor& tensor) { return ++packed, tensor; },
                                  [](const Tensor& tensor) { return tensor; });
    y = checkpoint(block, x, w);
  }
  EXPECT_EQ(packed, 2);
  EXPECT_TRUE(
      same(torch::autograd::grad({y.sum()}, {x}), torch::autograd::grad({block(x, w).sum()}, {x})));
}

}  // namespace
}  // namespace ferry
