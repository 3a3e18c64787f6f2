// Operator replay under LibTorch: the bits of plain training, in less memory, whatever is around.
#include "ferry/replay.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/hooks.h"
#include "ferry/offload.h"

namespace ferry {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensor& x)>;

// What happened since it was made.
class Since {
 public:
  std::int64_t of(std::int64_t ReplayStatistics::*what) const {
    return replay_statistics().*what - before_.*what;
  }

 private:
  ReplayStatistics before_ = replay_statistics();
};

// A pre-norm transformer block with dropout, and an MLP.
struct Block {
  static constexpr std::int64_t kWidth = 32;
  static constexpr std::int64_t kHeads = 4;
  torch::nn::LayerNorm norm1{torch::nn::LayerNormOptions({kWidth})};
  torch::nn::LayerNorm norm2{torch::nn::LayerNormOptions({kWidth})};
  torch::nn::Linear qkv{kWidth, 3 * kWidth};
  torch::nn::Linear out{kWidth, kWidth};
  torch::nn::Linear up{kWidth, 4 * kWidth};
  torch::nn::Linear down{4 * kWidth, kWidth};
  double dropout = 0.25;

  Tensor attention(const Tensor& x) {
    const auto batch = x.size(0), length = x.size(1);
    const Tensors parts = qkv(x).chunk(3, -1);
    const auto heads = [&](const Tensor& part) {
      return part.view({batch, length, kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    Tensor scores = heads(parts[0]).matmul(heads(parts[1]).transpose(-1, -2)) * 0.35;
    scores = torch::dropout(scores.softmax(-1), dropout, /*train=*/true);
    return out(scores.matmul(heads(parts[2])).transpose(1, 2).reshape({batch, length, kWidth}));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = x + torch::dropout(attention(norm1(x)), dropout, /*train=*/true);
    return y + torch::dropout(down(torch::gelu(up(norm2(y)))), dropout, /*train=*/true);
  }
  Tensors parameters() {
    Tensors all;
    for (const Tensors& each : {norm1->parameters(), norm2->parameters(), qkv->parameters(),
                                out->parameters(), up->parameters(), down->parameters()}) {
      all.insert(all.end(), each.begin(), each.end());
    }
    return all;
  }
};

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    torch::manual_seed(7);
    x = torch::randn({2, 8, Block::kWidth}).requires_grad_();
    w = torch::randn({Block::kWidth, Block::kWidth}).requires_grad_();
  }
  ~ReplayTest() override { EXPECT_EQ(replay_statistics().alive, alive_) << "a span is left"; }

  // The value, the gradients of its sum of squares, and where the generator is then.
  Tensors run(const Function& function, const Tensors& leaves) const {
    torch::manual_seed(11);
    const Tensor y = function(x);
    Tensors results = torch::autograd::grad({(y * y).sum()}, leaves);
    results.push_back(y.detach());
    results.push_back(torch::rand({4}));
    return results;
  }
  static void expect_same(const Tensors& plain, const Tensors& ours) {
    ASSERT_EQ(plain.size(), ours.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(plain[i].equal(ours[i])) << "result " << i;
    }
  }
  void expect_as_plain(const Function& function, const ReplayOptions& options = {}) const {
    expect_same(run(function, {x, w}),
                run([&](const Tensor& in) { return replay(options, function, in); }, {x, w}));
  }

  Tensor x, w;

 private:
  const std::int64_t alive_ = replay_statistics().alive;
};

// Bytes of storages that what `function` saves for backward keeps alive, without parameters.
std::int64_t saved_bytes(const std::function<void()>& function, const Tensors& parameters) {
  std::vector<c10::Storage> seen;
  for (const Tensor& parameter : parameters) seen.push_back(parameter.storage());
  std::int64_t bytes = 0;
  const SavedTensorsHooks hooks(
      [&](const Tensor& tensor) {
        for (const c10::Storage& storage : seen) {
          if (storage.is_alias_of(tensor.storage())) return tensor;
        }
        seen.push_back(tensor.storage());
        bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
        return tensor;
      },
      [](const Tensor& tensor) { return tensor; });
  function();
  return bytes;
}

TEST_F(ReplayTest, ATransformerBlockHasTheBitsOfPlainTraining) {
  Block block;
  Tensors leaves = block.parameters();
  leaves.push_back(x);
  const Function plain = [&](const Tensor& in) { return block.forward(in); };
  const Since since;
  expect_same(run(plain, leaves), run([&](const Tensor& in) { return replay(block, in); }, leaves));
  EXPECT_EQ(since.of(&ReplayStatistics::replays), 1);
  EXPECT_GT(since.of(&ReplayStatistics::calls_replayed), 10);
  EXPECT_LE(since.of(&ReplayStatistics::calls_replayed), since.of(&ReplayStatistics::calls));
}

TEST_F(ReplayTest, SoItHasWithTheExpensiveResultsKept) {
  Block block;
  Tensors leaves = block.parameters();
  leaves.push_back(x);
  const auto options = ReplayOptions().keep({"aten::mm", "aten::addmm", "aten::bmm"});
  const Since since;
  expect_same(run([&](const Tensor& in) { return block.forward(in); }, leaves),
              run([&](const Tensor& in) { return replay(options, block, in); }, leaves));
  const std::int64_t kept = since.of(&ReplayStatistics::calls_replayed);
  const Since again;
  run([&](const Tensor& in) { return replay(block, in); }, leaves);
  EXPECT_LT(kept, again.of(&ReplayStatistics::calls_replayed));
}

TEST_F(ReplayTest, LessIsSaved) {
  Block block;
  Tensor y;
  const std::int64_t plain = saved_bytes([&] { y = block.forward(x); }, block.parameters());
  const std::int64_t some = saved_bytes(
      [&] {
        y = replay(ReplayOptions().keep({"aten::mm", "aten::addmm", "aten::bmm"}), block, x);
      },
      block.parameters());
  const std::int64_t input = saved_bytes([&] { y = replay(block, x); }, block.parameters());
  EXPECT_LT(some, plain * 3 / 5);
  EXPECT_EQ(input, static_cast<std::int64_t>(x.nbytes()));
}

TEST_F(ReplayTest, TwoMlpsInARowAreTwoSpans) {
  const auto mlp = [this](const Tensor& in) {
    return torch::dropout(torch::relu(in.matmul(w)).sin(), 0.5, /*train=*/true);
  };
  const Since since;
  expect_same(run([&](const Tensor& in) { return mlp(mlp(in)); }, {x, w}),
              run([&](const Tensor& in) { return replay(mlp, replay(mlp, in)); }, {x, w}));
  EXPECT_EQ(since.of(&ReplayStatistics::spans), 2);
  EXPECT_EQ(since.of(&ReplayStatistics::replays), 2);
}

TEST_F(ReplayTest, TheFunctionRunsOnce) {
  int calls = 0;
  expect_as_plain([&](const Tensor& in) {
    ++calls;
    return in.matmul(w).exp().sin();
  });
  EXPECT_EQ(calls, 2);  // plain, and ours
}

TEST_F(ReplayTest, EachBackwardOfARetainedGraphReplays) {
  const Function function = [this](const Tensor& in) { return in.matmul(w).exp().sin(); };
  const Tensor plain = function(x).sum();
  const Since since;
  const Tensor ours = replay(function, x).sum();
  for (int i = 0; i < 3; ++i) {
    expect_same(torch::autograd::grad({plain}, {x, w}, {}, /*retain_graph=*/true),
                torch::autograd::grad({ours}, {x, w}, {}, /*retain_graph=*/true));
  }
  EXPECT_EQ(since.of(&ReplayStatistics::replays), 3);
}

TEST_F(ReplayTest, DerivativesOfHigherOrderAreTheSame) {
  const Function function = [this](const Tensor& in) { return in.matmul(w).tanh().exp(); };
  const auto derivatives = [&](const Tensor& root) {
    Tensors found;
    Tensor sum = root.sum();
    for (int order = 0; order < 3; ++order) {
      Tensors gradients = torch::autograd::grad({sum}, {x, w}, {}, true, true);
      for (const Tensor& gradient : gradients) found.push_back(gradient.detach());
      sum = gradients[0].pow(2).sum() + gradients[1].pow(2).sum();
    }
    return found;
  };
  expect_same(derivatives(function(x)), derivatives(replay(function, x)));
}

TEST_F(ReplayTest, AndOfABackwardInsideTheSpan) {
  expect_as_plain([this](const Tensor& in) {
    const Tensor y = in.matmul(w).tanh();
    const Tensor gradient = torch::autograd::grad({y.pow(2).sum()}, {in}, {}, true, true)[0];
    return gradient.sin() * y.exp();
  });
}

TEST_F(ReplayTest, WritesInPlaceOfWhatItMadeAreReplayed) {
  expect_as_plain([this](const Tensor& in) {
    Tensor y = in.matmul(w);
    y.mul_(2).add_(in).relu_();
    Tensor z = torch::empty_like(y);
    z.copy_(y);
    z.select(0, 1).sin_();
    return z * y.exp();
  });
}

TEST_F(ReplayTest, ItsResultMayBeWrittenInPlaceAfterIt) {
  const Function function = [this](const Tensor& in) { return in.matmul(w).sin() + 1; };
  expect_same(run([&](const Tensor& in) { return function(in).mul_(3); }, {x, w}),
              run([&](const Tensor& in) { return replay(function, in).mul_(3); }, {x, w}));
}

TEST_F(ReplayTest, ASavedResultWrittenAfterItIsRefusedAsWithout) {
  const Tensor y = replay([](const Tensor& in) { return in.exp(); }, x);
  y.detach().mul_(2);
  EXPECT_THROW(y.sum().backward(), ModifiedInPlace);
}

TEST_F(ReplayTest, AnInputWrittenAfterItIsRefusedWhereItMustBeReadAgain) {
  const Tensor plain = torch::ones_like(x);
  const Tensor y = replay([&](const Tensor& in) { return (in * (plain + 1)).sin(); }, x);
  plain.mul_(2);
  EXPECT_THROW(y.sum().backward(), ModifiedInPlace);
  plain.div_(2);  // as before, but nobody knows
  EXPECT_THROW(y.sum().backward(), c10::Error);
}

// So do the running statistics of a batch norm, and caches.
TEST_F(ReplayTest, WhatWritesFromOutsideIsKeptAndNotRunAgain) {
  Tensor count = torch::zeros({});
  expect_as_plain([&](const Tensor& in) {
    count.add_(1);
    return (in.matmul(w) * count.div(count).add(1)).sin();
  });
  EXPECT_EQ(count.item<double>(), 2);
  torch::nn::BatchNorm1d plain(8), ours(8);
  const auto norm = [this](torch::nn::BatchNorm1d& by) {
    return [&by, this](const Tensor& in) { return by(in.matmul(w)).sin(); };
  };
  expect_same(run(norm(plain), {x, w}),
              run([&](const Tensor& in) { return replay(norm(ours), in); }, {x, w}));
  EXPECT_TRUE(plain->running_mean.equal(ours->running_mean));
  EXPECT_EQ(ours->num_batches_tracked.item<std::int64_t>(), 1);
}

// It writes its statistics and does not say so.
TEST_F(ReplayTest, ABatchNormInTrainingRunsAgainOnCopiesOfItsStatistics) {
  const Tensor mean = torch::zeros({8}), variance = torch::ones({8});
  for (const bool training : {true, false}) {
    const Function function = [&](const Tensor& in) {
      const Tensor y = std::get<0>(
          torch::native_batch_norm(in.matmul(w), {}, {}, mean, variance, training, 0.5, 1e-5));
      return y.sin();
    };
    const Tensors before = {mean.clone(), variance.clone()};
    const Tensors plain = run(function, {x, w});
    const Tensors after = {mean.clone(), variance.clone()};
    mean.copy_(before[0]);
    variance.copy_(before[1]);
    const std::int64_t replayed = replay_statistics().calls_replayed;
    expect_same(plain, run([&](const Tensor& in) { return replay(function, in); }, {x, w}));
    expect_same({mean, variance}, after);
    EXPECT_EQ(after[0].equal(before[0]), !training);
    // The product, and the norm; what that reads in evaluation, a training may have written since.
    EXPECT_EQ(replay_statistics().calls_replayed - replayed, training ? 2 : 1);
  }
}

TEST_F(ReplayTest, MemoryFilledByHandIsKept) {
  expect_as_plain([this](const Tensor& in) {
    const Tensor mask = torch::empty({Block::kWidth});
    for (std::int64_t i = 0; i < mask.numel(); ++i) {
      mask.data_ptr<float>()[i] = static_cast<float>(i) / 7;
    }
    const Tensor scale = torch::empty({Block::kWidth});
    scale.data_ptr<float>()[0] = 3;
    for (std::int64_t i = 1; i < scale.numel(); ++i) scale.data_ptr<float>()[i] = 5;
    return (in.matmul(w) * mask.mul(2) * scale.mul_(2)).sin();
  });
}

TEST_F(ReplayTest, ListsNumbersAndIndicesAreReplayed) {
  expect_as_plain([this](const Tensor& in) {
    const Tensor y = in.matmul(w).tanh();
    const Tensors parts = y.split(Block::kWidth / 2, -1);
    const Tensor joined = torch::cat({parts[1].sin(), parts[0] * 2.5, y}, -1);
    const Tensor some = joined.index({torch::arange(2), torch::arange(2)});
    return torch::stack({some.cos(), some * y.mean().item<double>()}).exp();
  });
}

TEST_F(ReplayTest, AutocastIsThatOfForward) {
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const Function function = [this](const Tensor& in) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Tensor y = in.matmul(w).exp().matmul(w);
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return y.to(torch::kFloat).sin();
  };
  expect_as_plain(function);
}

// Within cdist there is a matmul, which autocast would see.
TEST_F(ReplayTest, AutocastAroundBackwardDoesNotReachIt) {
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const Function function = [this](const Tensor& in) {
    return torch::cdist(in.matmul(w), in, 2, /*compute_mode=*/1).sin();
  };
  const auto gradients = [&](const Tensor& root) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Tensors found = torch::autograd::grad({root}, {x, w});
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return found;
  };
  expect_same(gradients(function(x).sum()), gradients(replay(function, x).sum()));
}

TEST_F(ReplayTest, WhatAnOperatorThrowsLeavesItAndNothingIsLeft) {
  EXPECT_THROW(replay(
                   [this](const Tensor& in) {
                     const Tensor y = in.matmul(w).exp();
                     return y.matmul(y.narrow(0, 0, 1).expand({7, 7, 7}));
                   },
                   x),
               c10::Error);
  EXPECT_THROW(
      replay([](const Tensor& in) -> Tensor { throw std::logic_error(in.exp().name()); }, x),
      std::logic_error);
  expect_as_plain([this](const Tensor& in) { return in.matmul(w).exp(); });
}

TEST_F(ReplayTest, AfterAFailedBackwardTheNextOneReplays) {
  const Function function = [this](const Tensor& in) { return in.matmul(w).exp(); };
  const Tensor y = replay(function, x);
  int left = 1;
  x.register_hook([&](const Tensor& gradient) {
    if (left-- > 0) throw std::runtime_error("once");
    return gradient;
  });
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {x}, {}, true), std::runtime_error);
  const Tensor plain = torch::autograd::grad({function(x).sum()}, {x})[0];
  EXPECT_TRUE(torch::autograd::grad({y.sum()}, {x})[0].equal(plain));
}

TEST_F(ReplayTest, SpansNest) {
  const Function inner = [this](const Tensor& in) { return in.matmul(w).exp().sin(); };
  expect_as_plain([&](const Tensor& in) {
    const Tensor y = replay(inner, in.cos());
    return replay(inner, y.sin()).exp() * y;
  });
}

TEST_F(ReplayTest, InACheckpointItsInputsAreTheCheckpoints) {
  const Function inner = [this](const Tensor& in) {
    return torch::dropout(in.matmul(w).exp().sin(), 0.5, true);
  };
  const Function outer = [&](const Tensor& in) { return replay(inner, in.cos()).matmul(w); };
  const Function plain = [&](const Tensor& in) { return inner(in.cos()).matmul(w); };
  expect_same(run(plain, {x, w}),
              run([&](const Tensor& in) { return checkpoint(outer, in); }, {x, w}));
}

TEST_F(ReplayTest, ACheckpointInItRunsItsFunctionAgain) {
  const Function inner = [this](const Tensor& in) {
    return torch::dropout(in.matmul(w).exp().sin(), 0.5, true);
  };
  expect_same(run([&](const Tensor& in) { return inner(in.cos()).exp(); }, {x, w}),
              run(
                  [&](const Tensor& in) {
                    return replay(
                        [&](const Tensor& each) { return checkpoint(inner, each.cos()).exp(); },
                        in);
                  },
                  {x, w}));
}

TEST_F(ReplayTest, ItsInputsAreOffloaded) {
  const Function function = [this](const Tensor& in) { return in.matmul(w).exp().sin(); };
  const Function chain = [&](const Tensor& in) { return replay(function, in.cos()).cos(); };
  const Tensors plain = run([&](const Tensor& in) { return function(in.cos()).cos(); }, {x, w});
  Offload offload(OffloadOptions().min_bytes(1));
  offload.exempt(w);
  {
    const OffloadGuard guard(offload);
    expect_same(plain, run(chain, {x, w}));
  }
  EXPECT_GT(offload.statistics().offloaded_count, 0);
  EXPECT_TRUE(offload.empty());
}

TEST_F(ReplayTest, WithoutGradModeNothingIsRecorded) {
  const Since since;
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(replay([](const Tensor& in) { return in.exp(); }, x).requires_grad());
  EXPECT_EQ(since.of(&ReplayStatistics::spans), 0);
}

TEST_F(ReplayTest, AnUnknownNameToKeepIsRefused) {
  const auto keep = [&](const std::string& name) {
    replay(
        ReplayOptions().keep({name}), [](const Tensor& in) { return in.exp(); }, x);
  };
  EXPECT_THROW(keep("aten::no_such_op"), ValueError);
  EXPECT_THROW(keep("aten::linear"), ValueError);
  EXPECT_NO_THROW(keep("aten::exp"));
}

}  // namespace
}  // namespace ferry
