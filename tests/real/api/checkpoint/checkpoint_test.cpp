#include "ferry/checkpoint.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include "real/autograd/torch_autograd.h"
#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

using Model = Tensor (*)(const Tensor&, const Tensor&);

Tensor exponential(const Tensor& x, const Tensor& w) { return (x.exp() * w).sin().exp(); }
Tensor product(const Tensor& x, const Tensor& w) { return x.matmul(w).tanh().matmul(w) * x; }
Tensor perceptron(const Tensor& x, const Tensor& w) {
  return torch::linear(torch::gelu(torch::linear(x, w, w[0])), w).sigmoid();
}
Tensor convolution(const Tensor& x, const Tensor& w) {
  const Tensor image = x.view({1, 1, 4, 4});
  return torch::conv2d(image, w.view({4, 1, 2, 2})).tanh().mean(1).view({1, 9});
}
Tensor in_place(const Tensor& x, const Tensor& w) {
  Tensor y = x * w;
  y.add_(w).mul_(2);
  return y.exp_().sin();
}

Tensor nested(int depth, const CheckpointOptions& options, Model model, const Tensor& x,
              const Tensor& w) {
  if (depth == 0) return model(x, w);
  return checkpoint(
      options,
      [=](const Tensor& inner_x, const Tensor& inner_w) {
        return nested(depth - 1, options, model, inner_x, inner_w).cos();
      },
      x, w);
}
Tensor plain(int depth, Model model, const Tensor& x, const Tensor& w) {
  return depth == 0 ? model(x, w) : plain(depth - 1, model, x, w).cos();
}

TEST(Checkpoint, ValuesAndDerivativesToThirdOrderAreTheSameBits) {
  const Tensors inputs = {leaf({4, 4}), leaf({4, 4}, 2)};
  for (const Model model : {exponential, product, perceptron, convolution, in_place}) {
    for (int depth = 1; depth <= 3; ++depth) {
      const Tensors expected = derivatives(
          [&](const Tensors& in) { return plain(depth, model, in[0], in[1]); }, inputs, 3);
      for (const bool early : {true, false}) {
        const auto options = CheckpointOptions().early_stop(early);
        const Since since;
        EXPECT_TRUE(same(expected, derivatives(
                                       [&](const Tensors& in) {
                                         return nested(depth, options, model, in[0], in[1]);
                                       },
                                       inputs, 3)));
        EXPECT_GT(since.recomputes(), 0);
        EXPECT_EQ(since.stopped() > 0, early);
        EXPECT_EQ(since.alive(), 0);
      }
    }
  }
}

TEST(Checkpoint, ModulesLearnTheSame) {
  const auto step = [](bool checkpointed) {
    torch::manual_seed(3);
    torch::nn::Sequential net(torch::nn::Conv2d(1, 4, 3), torch::nn::ReLU(),
                              torch::nn::Conv2d(4, 2, 3), torch::nn::Tanh());
    const Tensor x = torch::randn({2, 1, 8, 8});
    const Tensor y = checkpointed ? checkpoint(net, x) : net->forward(x);
    y.pow(2).mean().backward();
    Tensors result{y.detach()};
    for (const Tensor& parameter : net->parameters()) result.push_back(parameter.grad());
    return result;
  };
  EXPECT_TRUE(same(step(false), step(true)));
}

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

TEST(Checkpoint, ReturnsWhatTheFunctionReturns) {
  const Tensor x = leaf({3});
  const auto [a, b] =
      checkpoint([](const Tensor& in) { return std::make_tuple(in.exp(), in.sin()); }, x);
  (a + b).sum().backward();
  EXPECT_TRUE(same(x.grad(), x.detach().exp() + x.detach().cos()));

  struct Named {
    Tensor value;
    int count;
  };
  const Named named = checkpoint([](const Tensor& in) { return Named{in.exp(), 3}; }, x);
  EXPECT_EQ(named.count, 3);
  const Tensors many = checkpoint([](const Tensor& in) { return Tensors{in.exp(), in.sin()}; }, x);
  EXPECT_EQ(many.size(), 2u);
  int calls = 0;
  checkpoint([&calls](const Tensor&) { ++calls; }, x);
  EXPECT_EQ(calls, 1);
}

TEST(Checkpoint, TakesAnyMixOfArguments) {
  Tensor x = leaf({3});
  Tensor w = leaf({3}, 2);
  int called = 0;
  const auto block = [](int n, const Tensor& a, const std::unique_ptr<double>& factor, Tensor b,
                        const std::string& name, int& calls, const Tensor& none) {
    EXPECT_EQ(name, "name");
    EXPECT_FALSE(none.defined());
    ++calls;
    b = b.exp();
    return (a * b * *factor).pow(n).sin();
  };
  const Tensor y =
      checkpoint(block, 2, x, std::make_unique<double>(1.5), w, "name", std::ref(called), Tensor());
  y.sum().backward();
  EXPECT_EQ(called, 2);
  const Tensors expected = torch::autograd::grad({(x * w.exp() * 1.5).pow(2).sin().sum()}, {x, w});
  EXPECT_TRUE(same(Tensors{x.grad(), w.grad()}, expected));
}

TEST(Checkpoint, OptionsMayBeANamedObject) {
  auto options = CheckpointOptions().early_stop(false).preserve_rng_state(false);
  const Tensor x = leaf({3});
  const Since since;
  checkpoint(
      options, [](const Tensor& in) { return in.sin(); }, x)
      .sum()
      .backward();
  EXPECT_EQ(since.stopped(), 0);
}

TEST(Checkpoint, WithoutGradModeTheFunctionJustRuns) {
  const Tensor x = leaf({3});
  const Since since;
  const torch::NoGradGuard no_grad;
  checkpoint([](const Tensor& in) { return in.sin(); }, x);
  EXPECT_EQ(since.segments(), 0);
}

// Early stop.

struct Calls {
  int begun = 0;
  int between = 0;
  int done = 0;
};

TEST(CheckpointEarlyStop, AnOpThatSavesItsInputIsEnteredAndEndsTheRecompute) {
  for (const bool early : {true, false}) {
    Calls calls;
    const auto block = [&calls](const Tensor& x) {
      ++calls.begun;
      Tensor y = x.exp();
      ++calls.between;
      y = y.sin();
      ++calls.done;
      return y;
    };
    checkpoint(CheckpointOptions().early_stop(early), block, leaf({3})).sum().backward();
    EXPECT_EQ(calls.begun, 2);
    EXPECT_EQ(calls.between, 2);
    EXPECT_EQ(calls.done, early ? 1 : 2);
  }
}

int count(const std::vector<std::string>& ops, const std::string& name) {
  return static_cast<int>(std::count_if(ops.begin(), ops.end(), [&](const std::string& op) {
    return op.compare(0, name.size(), name) == 0 &&
           (op.size() == name.size() || op[name.size()] == ' ');
  }));
}

TEST(CheckpointEarlyStop, ThatOpsKernelDoesNotRun) {
  const Tensor x = leaf({1, 1, 4, 4});
  const Tensor w = leaf({1, 1, 2, 2}, 2);
  const Tensor y =
      checkpoint([](const Tensor& a, const Tensor& b) { return torch::conv2d(a, b); }, x, w);
  const real::TorchAutograd::OpLog log{real::TorchAutograd()};
  y.sum().backward();
  EXPECT_EQ(count(log.names(), "aten::convolution"), 1);
  EXPECT_EQ(count(log.names(), "aten::_convolution"), 0);
}

TEST(OpLog, TheOuterOneHasTheInnerOnesOps) {
  using Log = real::TorchAutograd::OpLog;
  const Tensor x = torch::ones({2, 3});
  const Log outer{real::TorchAutograd()};
  x.sin();
  {
    const Log inner{real::TorchAutograd()};
    torch::cat({x, x});
    EXPECT_EQ(inner.names(), std::vector<std::string>{"aten::cat [2, 3], [2, 3]"});
  }
  x.mm(torch::ones({3, 1}));
  const auto ops = outer.names();
  EXPECT_EQ(count(ops, "aten::sin"), 1);
  EXPECT_EQ(count(ops, "aten::cat"), 1);
  EXPECT_NE(std::find(ops.begin(), ops.end(), "aten::mm [2, 3], [3, 1]"), ops.end());
}

TEST(CheckpointEarlyStop, AnOpThatSavesItsOutputHasRun) {
  const Tensor x = leaf({3});
  for (const bool output : {true, false}) {
    Tensor written;  // by the op that ends the recompute
    const Tensor y = checkpoint(
        [&written, output](const Tensor& in) {
          Tensor z = in.clone();
          written = z.detach();
          return output ? z.exp_() : z.sin_();
        },
        x);
    y.sum().backward();
    EXPECT_TRUE(same(written, output ? x.detach().exp() : x.detach()));
  }
}

TEST(CheckpointEarlyStop, TheGuardWinsAndIsReadInForward) {
  const auto stops = [](bool option, std::vector<bool> guards) {
    const Since since;
    Tensor y;
    {
      std::vector<std::unique_ptr<CheckpointEarlyStopGuard>> guarded;
      for (const bool guard : guards) {
        guarded.push_back(std::make_unique<CheckpointEarlyStopGuard>(guard));
      }
      y = checkpoint(
          CheckpointOptions().early_stop(option), [](const Tensor& x) { return x.exp().sin(); },
          leaf({3}));
      while (!guarded.empty()) guarded.pop_back();
    }
    const CheckpointEarlyStopGuard too_late(!option);
    y.sum().backward();
    return since.stopped() > 0;
  };
  EXPECT_TRUE(stops(true, {}));
  EXPECT_FALSE(stops(false, {}));
  EXPECT_FALSE(stops(true, {false}));
  EXPECT_TRUE(stops(false, {true}));
  EXPECT_TRUE(stops(false, {false, true}));
}

TEST(CheckpointEarlyStop, WhereNothingWasSavedTheFunctionIsNotRunAgain) {
  int calls = 0;
  const Tensor x = leaf({3});
  checkpoint([&calls](const Tensor& in) { return ++calls, in + 1; }, x).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(same(x.grad(), torch::ones({3}, torch::kFloat64)));
}

// Which backward gets what.

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

// Memory.

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

TEST(Checkpoint, ABatchNormThatAsksUpdatesItsStatisticsOnce) {
  const auto step = [](bool checkpointed) {
    torch::manual_seed(2);
    torch::nn::BatchNorm1d norm(4);
    const Tensor x = torch::randn({8, 4}, torch::requires_grad());
    auto block = [norm](const Tensor& in) mutable {
      const double momentum = is_recomputing() ? 0. : 0.1;
      return torch::batch_norm(in, norm->weight, norm->bias, norm->running_mean, norm->running_var,
                               true, momentum, 1e-5, false)
          .sin();
    };
    (checkpointed ? checkpoint(block, x) : block(x)).sum().backward();
    return Tensors{norm->running_mean, norm->running_var, norm->weight.grad(), x.grad()};
  };
  EXPECT_TRUE(same(step(false), step(true)));
}

TEST(Checkpoint, LongChainsAndDeepNestsDoNotOverflowTheStack) {
  const Tensor x = leaf({2});
  for (const bool backward : {true, false}) {
    const Since since;
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) {
      y = checkpoint([](const Tensor& in) { return in.sin().cos(); }, y);
    }
    if (backward) y.sum().backward();
    y = Tensor();
    EXPECT_EQ(since.alive(), 0);
  }
  const Tensor deep = nested(60, CheckpointOptions(), exponential, x, x);
  const Tensors expected = torch::autograd::grad({plain(60, exponential, x, x).sum()}, {x});
  EXPECT_TRUE(same(torch::autograd::grad({deep.sum()}, {x}), expected));
}

TEST(CheckpointSequential, CutsAChainAndRunsTheLastPartPlainly) {
  const Tensors inputs = {leaf({3})};
  int calls = 0;
  const std::vector<std::function<Tensor(Tensor)>> chain(
      5, [&calls](const Tensor& x) { return ++calls, x.sin().exp(); });
  const auto run = [&](std::int64_t segments) {
    calls = 0;
    return derivatives(
        [&](const Tensors& in) { return checkpoint_sequential(chain, segments, in[0]); }, inputs,
        1);
  };
  const Tensors expected = run(1);
  EXPECT_EQ(calls, 5);
  EXPECT_TRUE(same(run(2), expected));
  EXPECT_EQ(calls, 5 + 2);
  EXPECT_TRUE(same(run(5), expected));
  EXPECT_EQ(calls, 5 + 4);
  EXPECT_THROW(run(6), std::invalid_argument);
  EXPECT_THROW(run(0), std::invalid_argument);
}

TEST(CheckpointSequential, TakesASequential) {
  const auto step = [](std::int64_t segments) {
    torch::manual_seed(3);
    torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Tanh(), torch::nn::Linear(4, 4));
    checkpoint_sequential(net, segments, torch::randn({2, 4}, torch::requires_grad()))
        .sum()
        .backward();
    Tensors gradients;
    for (const Tensor& parameter : net->parameters()) gradients.push_back(parameter.grad());
    return gradients;
  };
  EXPECT_TRUE(same(step(1), step(3)));
}

}  // namespace
}  // namespace ferry
