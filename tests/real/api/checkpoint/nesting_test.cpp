// Backwards inside checkpointed functions, checkpoints inside checkpoints, groups and threads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <optional>
#include <thread>

#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

class Backwards : public ::testing::TestWithParam<bool> {
 protected:
  CheckpointOptions options() const { return CheckpointOptions().early_stop(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Checkpoint, Backwards, ::testing::Bool(),
                         [](const auto& early) { return early.param ? "EarlyStop" : "ToTheEnd"; });

TEST_P(Backwards, GradInsideTheFunction) {
  const auto block = [](const Tensor& x) {
    const Tensor y = x.exp().sin();
    const Tensor slope = torch::autograd::grad({y.sum()}, {x}, {}, true, /*create_graph=*/true)[0];
    return (slope * y).cos().exp();
  };
  const Tensors inputs = {leaf({3})};
  const auto expected = derivatives([&](const Tensors& in) { return block(in[0]); }, inputs, 2);
  const auto checkpointed = derivatives(
      [&](const Tensors& in) { return checkpoint(options(), block, in[0]); }, inputs, 2);
  EXPECT_TRUE(same(expected, checkpointed));
  const auto twice = [&](const Tensor& x) { return checkpoint(options(), block, x); };
  EXPECT_TRUE(same(
      expected, derivatives([&](const Tensors& in) { return checkpoint(options(), twice, in[0]); },
                            inputs, 2)));
}

TEST_P(Backwards, BackwardInsideTheFunction) {
  for (const bool retain : {true, false}) {
    const auto run = [&](bool checkpointed) {
      const Tensor w = leaf({3}, 4);
      const Tensor x = leaf({3});
      const auto block = [&w, retain](const Tensor& in) {
        const Tensor a = (in.exp() * w).sin();
        const Tensor b = a.exp();
        // Accumulates in w in forward, and again in a recompute that gets here.
        b.sum().backward({}, retain, false, {{w}});
        return (retain ? a : in.sin()) * w.exp().sin();
      };
      const Tensor y = checkpointed ? checkpoint(options(), block, x) : block(x);
      const Tensor first = w.grad() / (checkpointed && !GetParam() ? 2 : 1);
      const Tensors gradients = torch::autograd::grad({y.sum()}, {x, w});
      return Tensors{y.detach(), first, gradients[0], gradients[1]};
    };
    EXPECT_TRUE(same(run(false), run(true)));
  }
}

TEST_P(Backwards, AnInnerBackwardThatDoesNotRetainDropsItsSaves) {
  const Tensor x = leaf({3});
  const auto block = [](const Tensor& in) {
    const Tensor side = in.detach().requires_grad_().exp().sin();
    side.sum().backward();
    return in.exp().sin();
  };
  const Tensor y = checkpoint(options(), block, x);
  EXPECT_TRUE(same(torch::autograd::grad({y.sum()}, {x}),
                   torch::autograd::grad({x.exp().sin().sum()}, {x})));
}

TEST_P(Backwards, OfACheckpointInsideACheckpoint) {
  const auto inner = [this](const Tensor& x) {
    return checkpoint(
        options(), [](const Tensor& in) { return in.exp().sin(); }, x);
  };
  const auto block = [&inner](const Tensor& x) {
    const Tensor y = inner(x.cos());
    return torch::autograd::grad({y.exp().sum()}, {x}, {}, true, true)[0] * inner(y);
  };
  const auto plain = [](const Tensor& x) {
    const Tensor y = x.cos().exp().sin();
    return torch::autograd::grad({y.exp().sum()}, {x}, {}, true, true)[0] * y.exp().sin();
  };
  const Tensors inputs = {leaf({3})};
  EXPECT_TRUE(
      same(derivatives([&](const Tensors& in) { return plain(in[0]); }, inputs, 2),
           derivatives([&](const Tensors& in) { return checkpoint(options(), block, in[0]); },
                       inputs, 2)));
}

TEST(CheckpointNesting, EachCheckpointATensorWasSavedInRunsAgainOnce) {
  int outer = 0;
  int inner = 0;
  const Tensor x = leaf({3});
  const Tensor y = checkpoint(
      [&](const Tensor& a) {
        ++outer;
        return checkpoint([&](const Tensor& b) { return ++inner, b.sin().exp().sin(); }, a.exp());
      },
      x);
  y.sum().backward();
  EXPECT_EQ(outer, 2);
  EXPECT_EQ(inner, 2);  // the outer recompute ends when it has the inner one's input
}

TEST(CheckpointNesting, TheContextSaysWhereOneIs) {
  std::string story;
  const auto tell = [&story] {
    story += is_checkpointing() ? 'c' : '-';
    story += is_recomputing() ? 'r' : '-';
    story += ' ';
  };
  tell();
  const Tensor y = checkpoint(
      [&](const Tensor& x) {
        tell();
        return checkpoint([&](const Tensor& in) { return tell(), in.sin(); }, x).exp();
      },
      leaf({3}));
  tell();
  y.sum().backward();
  tell();
  EXPECT_EQ(story, "-- c- c- -- -r cr -r -- ");
}

TEST(CheckpointNesting, ABackwardBegunInACheckpointedFunctionIsStillOneOfTheTasks) {
  const Tensor x = leaf({3});
  int calls = 0;
  const Tensor y =
      checkpoint([&calls](const Tensor& in) { return ++calls, in.exp().sin().exp(); }, x);
  checkpoint(
      to_the_end(),
      [&](const Tensor& in) {
        y.sum().backward({}, true);
        return in.sin();
      },
      x)
      .sum()
      .backward();
  EXPECT_EQ(calls, 3);
}

// Groups.

TEST(GraphExecGroupTest, SharesOneRecomputeBetweenDisjointBackwards) {
  for (const bool grouped : {false, true}) {
    int calls = 0;
    const Tensor x = leaf({4, 4});
    const Tensor w = leaf({4, 4}, 2);
    const auto [a, b] = checkpoint(
        [&calls](const Tensor& left, const Tensor& right) {
          ++calls;
          return std::make_pair(left.exp().sin(), right.exp().cos());
        },
        x, w);
    const GraphExecGroup group;
    Tensors gradients;
    {
      std::optional<GraphExecGroup::Guard> guard;
      if (grouped) guard.emplace(group);
      gradients.push_back(torch::autograd::grad({a.sum()}, {x}, {}, true)[0]);
      gradients.push_back(torch::autograd::grad({b.sum()}, {w}, {}, true)[0]);
    }
    EXPECT_EQ(calls, grouped ? 2 : 3);
    const Tensors expected = torch::autograd::grad({(x.exp().sin() + w.exp().cos()).sum()}, {x, w});
    EXPECT_TRUE(same(gradients, expected));
  }
}

TEST(GraphExecGroupTest, RefusesOverlapAndNesting) {
  const Tensor x = leaf({3});
  const Tensor y = checkpoint([](const Tensor& in) { return in.exp().sin(); }, x).sum();
  const GraphExecGroup group;
  {
    const GraphExecGroup::Guard guard(group);
    y.backward({}, true);
    EXPECT_TRUE(
        throws("Performing two backward calls that overlap", [&] { y.backward({}, true); }));
    EXPECT_TRUE(throws<Error>("GraphExecGroup contexts cannot be nested. Already inside group ",
                              [&] { const GraphExecGroup::Guard inner{GraphExecGroup()}; }));
  }
  {
    const GraphExecGroup::Guard again(group);
    EXPECT_TRUE(throws("overlap", [&] { y.backward({}, true); }));
  }
  y.backward();
}

TEST(GraphExecGroupTest, WhatItSharesGoesWithIt) {
  const Tensor x = leaf({3});
  std::optional<WeakStorage> made;
  std::optional<GraphExecGroup> group(std::in_place);
  std::optional<GraphExecGroup::Guard> guard(std::in_place, *group);
  const auto [a, b] = checkpoint(
      [&made](const Tensor& in) {
        const Tensor first = in.exp();
        if (is_recomputing()) made = weak(first);
        return std::make_pair(first * 1, in.sin().sin());
      },
      x);
  b.sum().backward({}, true);
  EXPECT_FALSE(made->expired());
  guard.reset();
  EXPECT_FALSE(made->expired());
  group.reset();
  EXPECT_TRUE(made->expired());
}

// Threads.

TEST(CheckpointThreads, EachRecomputesForItselfInOneRetainedGraph) {
  const Tensor x = leaf({8, 8});
  const Tensor w = leaf({8, 8}, 2);
  const auto block = [](const Tensor& a, const Tensor& b) {
    return a.matmul(b).sin().exp().matmul(b);
  };
  const Tensor y =
      checkpoint([&](const Tensor& a, const Tensor& b) { return checkpoint(block, a.exp(), b); }, x,
                 w)
          .sum();
  const Tensors expected = torch::autograd::grad({block(x.exp(), w).sum()}, {x, w});
  std::vector<std::thread> threads;
  std::array<int, 4> right{};
  for (std::size_t i = 0; i < right.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        right[i] += same(torch::autograd::grad({y}, {x, w}, {}, true), expected) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) EXPECT_EQ(count, 20);
}

TEST(CheckpointThreads, OneGroupOnTwoThreads) {
  const Tensor x = leaf({8, 8});
  const Tensor y = checkpoint([](const Tensor& a) { return a.exp().sin().exp(); }, x).sum();
  const Tensors expected = torch::autograd::grad({x.exp().sin().exp().sum()}, {x});
  const GraphExecGroup group;
  std::vector<std::thread> threads;
  std::array<bool, 2> right{};
  for (std::size_t i = 0; i < right.size(); ++i) {
    threads.emplace_back([&, i] {
      const GraphExecGroup::Guard guard(group);
      right[i] = static_cast<bool>(same(torch::autograd::grad({y}, {x}, {}, true), expected));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(right[0]);
  EXPECT_TRUE(right[1]);
}

}  // namespace
}  // namespace ferry
