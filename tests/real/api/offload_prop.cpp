// Offloading changes no bit of any gradient: random models × random options × ways to run backward.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "ferry/offload.h"
#include "tests/real/api/random_model.h"
#include "tests/real/api/same_bits.h"

namespace ferry {
namespace {

struct Way {
  bool retain = false;      // backward twice
  int order = 1;            // of derivatives
  bool interleave = false;  // two forwards, then two backwards
};

// Every gradient that a run makes, in order.
std::vector<torch::Tensor> run(const RandomModel& model, const Way& way,
                               const std::optional<Offload>& offload, bool exclude) {
  torch::manual_seed(11);
  auto inputs = model.weights;
  const auto make_guard = [&]() -> std::unique_ptr<OffloadGuard> {
    return offload ? std::make_unique<OffloadGuard>(*offload) : nullptr;
  };
  const auto make_exclude = [&]() -> std::unique_ptr<NoOffloadGuard> {
    return exclude ? std::make_unique<NoOffloadGuard>() : nullptr;
  };
  const auto guard = make_guard();
  std::vector<torch::Tensor> losses;
  for (int i = 0; i < (way.interleave ? 2 : 1); ++i) {
    const auto x = torch::randn({RandomModel::kRows, RandomModel::kColumns}, torch::kFloat64);
    losses.push_back(model.loss(model.forward(x.matmul(inputs[0]), make_exclude)));
  }
  std::vector<torch::Tensor> gradients;
  const auto collect = [&](std::vector<torch::Tensor> found) {
    for (auto& gradient : found) {
      if (gradient.defined()) gradients.push_back(std::move(gradient));
    }
  };
  for (const auto& loss : losses) {
    if (way.retain) {
      collect(torch::autograd::grad({loss}, inputs, {}, true, false, true));
    }
    collect(derivatives(loss, inputs, way.order));
  }
  return gradients;
}

OffloadOptions draw_options() {
  OffloadOptions options;
  options.min_bytes(*one_of<std::int64_t>({0, 1, 1024, 3000}));
  options.window(*one_of<std::int64_t>({0, 5000, kUnlimited}));
  options.window_tensors(*one_of<std::int64_t>({1, 3, kUnlimited}));
  options.prefetch(*one_of<std::int64_t>({0, 5000, kUnlimited}));
  options.prefetch_tensors(*one_of<std::int64_t>({0, 2, kUnlimited, kUnlimited}));
  options.hold(*one_of<std::int64_t>({0, 5000, kUnlimited}));
  options.copy_streams(
      *one_of<CopyStreams>({CopyStreams::kTwo, CopyStreams::kOne, CopyStreams::kNone}));
  options.reload_pool(*one_of<ReloadPool>({ReloadPool::kConsumer, ReloadPool::kCopyStream}));
  if (*one_of<int>({0, 0, 1})) options.disk(std::filesystem::temp_directory_path());
  return options;
}

RC_GTEST_PROP(OffloadProperty, GradientsAreTheSameBits, ()) {
  const RandomModel model(*gen_layers());
  const Way way{*rc::gen::arbitrary<bool>(), *one_of<int>({1, 1, 2, 3}),
                *rc::gen::arbitrary<bool>()};
  const bool exclude = *rc::gen::arbitrary<bool>();
  const auto plain = run(model, way, std::nullopt, false);
  Offload offload(draw_options());
  if (*rc::gen::arbitrary<bool>()) {
    for (const auto& weight : model.weights) offload.exempt(weight);
  }
  for (int step = 0; step < 2; ++step) expect_same(plain, run(model, way, offload, exclude));
  RC_ASSERT(offload.empty());
  RC_CLASSIFY(offload.statistics().reloaded_count > 0, "reloaded");
  RC_CLASSIFY(offload.statistics().prefetched_count > 0, "prefetched");
  RC_CLASSIFY(offload.statistics().shared > 0, "shared");
}

// Threads that train models of their own, through one Offload.
TEST(OffloadThreads, EachHasTheGradientsOfItsModel) {
  const auto layers = [](int thread) {
    std::vector<Layer> drawn;
    for (int i = 0; i < 8; ++i) {
      drawn.push_back(
          {static_cast<LayerKind>((thread * 5 + i * 3) % static_cast<int>(LayerKind::kDropout)),
           i % 3});
    }
    return drawn;
  };
  const auto train = [&](const RandomModel& model, const std::optional<Offload>& offload) {
    const auto x = torch::ones({RandomModel::kRows, RandomModel::kColumns}, torch::kFloat64);
    std::unique_ptr<OffloadGuard> guard;
    if (offload) guard = std::make_unique<OffloadGuard>(*offload);
    const auto loss = model.loss(model.forward(x, [] { return 0; }));
    return torch::autograd::grad({loss}, model.weights, {}, false, false, true);
  };
  Offload offload(OffloadOptions().min_bytes(1).window_tensors(1));
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<RandomModel>> models;
  for (int i = 0; i < kThreads; ++i) models.push_back(std::make_unique<RandomModel>(layers(i)));
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto& model = *models[static_cast<std::size_t>(i)];
      const auto plain = train(model, std::nullopt);
      for (int step = 0; step < 20; ++step) {
        const auto ours = train(model, offload);
        for (std::size_t k = 0; k < plain.size(); ++k) {
          const bool same = plain[k].defined() ? same_bits(plain[k], ours[k]) : !ours[k].defined();
          wrong[static_cast<std::size_t>(i)] += same ? 0 : 1;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
  EXPECT_TRUE(offload.empty());
  EXPECT_GT(offload.statistics().reloaded_count, 0);
}

}  // namespace
}  // namespace ferry
