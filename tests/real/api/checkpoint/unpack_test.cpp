// Tensors saved in a checkpoint are recomputed once for each backward that unpacks them, and live
// no longer than it needs them.
#include "ferry/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

TEST(Checkpoint, EachBackwardRecomputesOnce) {
  const Tensor x = leaf({3});
  const Tensor y = checkpoint([](const Tensor& in) { return in.exp().sin().exp(); }, x).sum();
  const Since since;
  const Tensors first = torch::autograd::grad({y}, {x}, {}, true);
  EXPECT_EQ(since.recomputes(), 1);
  EXPECT_TRUE(same(first, torch::autograd::grad({y}, {x}, {}, true)));
  EXPECT_EQ(since.recomputes(), 2);
  EXPECT_TRUE(same(first, torch::autograd::grad({y}, {x})));
  EXPECT_EQ(since.recomputes(), 3);
}

TEST(Checkpoint, AFirstOutputsBackwardRecomputesUpToTheLastSave) {
  int done = 0;
  const Tensor x = leaf({3});
  const auto [a, b] = checkpoint(
      [&done](const Tensor& in) {
        const Tensor early = in.sin();
        const Tensor late = in.exp();
        ++done;
        return std::make_pair(early, late.cos());
      },
      x);
  a.sum().backward({}, true);
  EXPECT_EQ(done, 2);
  b.sum().backward();
  EXPECT_EQ(done, 3);
  const Tensor d = x.detach();
  EXPECT_TRUE(same(x.grad(), d.cos() + -d.exp().sin() * d.exp()));
}

TEST(Checkpoint, OutsideABackwardEveryAccessRecomputes) {
  const Tensor x = leaf({3});
  const Tensor y = checkpoint([](const Tensor& in) { return in.exp().sin(); }, x);
  auto* const node = dynamic_cast<torch::autograd::generated::SinBackward0*>(y.grad_fn().get());
  ASSERT_TRUE(node);
  const Since since;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(same(node->self_.unpack().detach(), x.detach().exp()));
    EXPECT_EQ(since.recomputes(), i);
  }
  y.sum().backward();
  EXPECT_EQ(since.recomputes(), 4);
}

// Remembers what it saved and what came back.
struct Remember : torch::autograd::Function<Remember> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& kept, Tensor* back, int unpacks) {
    context->save_for_backward({kept});
    context->saved_data["back"] = reinterpret_cast<std::int64_t>(back);
    context->saved_data["unpacks"] = unpacks;
    return x.clone();
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& gradients) {
    for (int i = 0; i < context->saved_data["unpacks"].toInt(); ++i) {
      *reinterpret_cast<Tensor*>(context->saved_data["back"].toInt()) =
          context->get_saved_variables()[0];
    }
    return {gradients[0], Tensor(), Tensor(), Tensor()};
  }
};

TEST(Checkpoint, ATensorThatNeedsNoGradientComesBackAsItself) {
  const Tensor constant = torch::ones({3});
  Tensor back;
  checkpoint([&back](const Tensor& x, const Tensor& c) { return Remember::apply(x, c, &back, 1); },
             leaf({3}), constant)
      .sum()
      .backward();
  EXPECT_TRUE(back.is_same(constant));
}

TEST(Checkpoint, ANodeThatUnpacksTwiceIsAnError) {
  Tensor back;
  const Tensor y =
      checkpoint([&back](const Tensor& x) { return Remember::apply(x, x, &back, 2); }, leaf({3}));
  EXPECT_TRUE(throws("Unpack is being triggered for a tensor that was already unpacked once. If",
                     [&] { y.sum().backward(); }));
}

TEST(Checkpoint, WhatIsUnpackedIsGoneWhenItsNodeIsAndWhatNobodyNeedsIsNotKept) {
  std::vector<WeakStorage> made;
  int alive_at_middle = -1;
  const auto alive = [&made] {
    int count = 0;
    for (const auto& storage : made) count += storage.expired() ? 0 : 1;
    return count;
  };
  const Tensor x = leaf({3});
  Tensor y = checkpoint(
      [&](const Tensor& in) {
        Tensor z = in;
        for (int i = 0; i < 4; ++i) {
          z = z.exp();
          if (i == 1) {
            z.register_hook([&](const Tensor&) { alive_at_middle = alive(); });
          }
          if (is_recomputing()) made.push_back(weak(z));
        }
        return z;
      },
      x);
  y.sum().backward({}, true);
  // The last is not made: its op ends the recompute. In the middle two of three are used up.
  EXPECT_EQ(made.size(), 3u);
  EXPECT_EQ(alive_at_middle, 2);
  EXPECT_EQ(alive(), 0);
}

TEST(Checkpoint, WhatAutogradDroppedIsSkipped) {
  std::vector<WeakStorage> made;
  int kept = -1;
  const Tensor x = leaf({3});
  const auto [a, b] = checkpoint(
      [&](const Tensor& in) {
        const Tensor first = in.exp();
        if (is_recomputing()) made.push_back(weak(first));
        const Tensor second = in.sin();
        if (is_recomputing()) kept = made[0].expired() ? 0 : 1;
        return std::make_pair(first.exp().exp(), second);
      },
      x);
  a.sum().backward();  // without retaining: its saves are dropped
  made.clear();
  b.sum().backward();
  EXPECT_EQ(kept, 1);  // the function's own reference
  EXPECT_TRUE(made[0].expired());
}

TEST(Checkpoint, NothingOfItIsLeft) {
  struct Owned {
    int value = 0;
  };
  for (const bool backward : {true, false}) {
    const Since since;
    auto owned = std::make_shared<Owned>();
    const std::weak_ptr<Owned> function = owned;
    Tensor x = leaf({64});
    const WeakStorage input = weak(x);
    Tensor y = checkpoint([owned](const Tensor& in) { return in.exp().sin(); }, x.detach() * x);
    owned.reset();
    EXPECT_FALSE(function.expired());
    if (backward) {
      y.sum().backward();
    } else {
      y = Tensor();
    }
    EXPECT_TRUE(function.expired());
    EXPECT_EQ(since.alive(), 0);
    y = Tensor();
    x = Tensor();
    EXPECT_TRUE(input.expired());
  }
}

}  // namespace
}  // namespace ferry
