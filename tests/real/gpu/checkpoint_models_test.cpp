// Checkpoints on a GPU: the bits of plain training, with CUDA's generator replayed in a recompute,
// alone, nested, chosen op by op, and under an offloader.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/offload.h"
#include "ferry/selective.h"
#include "tests/real/gpu/trained.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kWidth = 128;
constexpr int kBlocks = 3;

// Linear, GELU, dropout, a residual.
struct Net {
  Net() {
    torch::manual_seed(3);
    for (int i = 0; i < kBlocks; ++i) {
      weights.push_back((torch::randn({kWidth, kWidth}, at::kCUDA) / 10).requires_grad_());
    }
    input = torch::randn({64, kWidth}, at::kCUDA).requires_grad_();
  }
  static at::Tensor block(const at::Tensor& x, const at::Tensor& weight) {
    return x + torch::dropout(torch::gelu(torch::linear(x, weight)), 0.3, /*train=*/true);
  }
  std::vector<at::Tensor> weights;
  at::Tensor input;
};

using Forward = std::function<at::Tensor(Net&)>;

Tensors step(const Forward& forward) {
  Net net;
  torch::manual_seed(11);
  const at::Tensor loss = forward(net).square().mean();
  loss.backward();
  Tensors results = {loss.detach(), net.input.grad()};
  for (const at::Tensor& weight : net.weights) results.push_back(weight.grad());
  results.push_back(torch::rand({4}, at::kCUDA));  // the generator goes on as if nothing had run
  return results;
}

at::Tensor each_block(Net& net, const std::function<at::Tensor(at::Tensor, at::Tensor)>& run) {
  at::Tensor x = net.input;
  for (const at::Tensor& weight : net.weights) x = run(x, weight);
  return x;
}

Forward checkpointed(const CheckpointOptions& options) {
  return [options](Net& net) {
    return each_block(net, [&](const at::Tensor& x, const at::Tensor& weight) {
      return checkpoint(options, Net::block, x, weight);
    });
  };
}

at::Tensor nested(Net& net) {
  const auto whole = [](at::Tensor& x, const std::vector<at::Tensor>& weights) {
    for (const at::Tensor& weight : weights) x = checkpoint(Net::block, x, weight);
    return x;
  };
  return checkpoint(whole, net.input, net.weights);
}

struct Way {
  const char* name;
  Forward forward;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

std::vector<Way> ways() {
  const auto moves = selective([](const SelectiveCall& call) {
    return call.op == "aten::gelu" ? CheckpointPolicy::kMustOffload
                                   : CheckpointPolicy::kPreferRecompute;
  });
  return {
      {"Plain", checkpointed(CheckpointOptions())},
      {"ToTheEnd", checkpointed(CheckpointOptions().early_stop(false))},
      {"Reentrant", checkpointed(CheckpointOptions().reentrant(true))},
      {"Debug", checkpointed(CheckpointOptions().debug(true))},
      {"Nested", nested},
      {"SelectiveSave", checkpointed(CheckpointOptions().context_fn(selective({"aten::gelu"})))},
      {"SelectiveOffload", checkpointed(CheckpointOptions().context_fn(moves))},
      {"Choices", checkpointed(CheckpointOptions().choices(
                      {SavedChoice::kRecompute, SavedChoice::kKeep, SavedChoice::kOffload}))},
  };
}

class CheckpointOnGpu : public testing::TestWithParam<Way> {
 protected:
  static Tensors plain() {
    return step([](Net& net) { return each_block(net, Net::block); });
  }
};

TEST_P(CheckpointOnGpu, GivesThePlainStepsBits) {
  const Tensors expected = plain();
  ASSERT_EQ(difference(expected, plain()), "") << "LibTorch's own steps differ";
  EXPECT_EQ(difference(expected, step(GetParam().forward)), "");
}

TEST_P(CheckpointOnGpu, GivesThemUnderAnOffloader) {
  const Tensors expected = plain();
  OffloadOptions options;
  options.device(at::Device(at::kCUDA, 0)).window(0);
  Offload offload(options);
  {
    const OffloadGuard guard(offload);
    EXPECT_EQ(difference(expected, step(GetParam().forward)), "");
  }
  EXPECT_GT(offload.statistics().offloaded_count, 0);
  EXPECT_TRUE(offload.empty());
}

INSTANTIATE_TEST_SUITE_P(Gpu, CheckpointOnGpu, testing::ValuesIn(ways()),
                         [](const auto& way) { return std::string(way.param.name); });

class SegmentsOnGpu : public testing::TestWithParam<TrainedModel> {};

TEST_P(SegmentsOnGpu, GiveThePlainStepsBits) {
  Trained plain(GetParam());
  Trained segments(GetParam(), train::Segments::kAll);
  EXPECT_EQ(difference(plain.step(), segments.step()), "");
}

INSTANTIATE_TEST_SUITE_P(Gpu, SegmentsOnGpu,
                         testing::Values(TrainedModel::kGpt, TrainedModel::kGptWithDropout,
                                         TrainedModel::kResnet),
                         [](const auto& model) { return name(model.param); });

}  // namespace
}  // namespace ferry::real
