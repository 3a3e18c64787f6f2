// Checkpoints change no bit of any derivative to the third order: random models, cut into random
// segments that nest, each with random choices, alone and under an offloader.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/offload.h"
#include "tests/real/api/random_model.h"
#include "tests/real/api/same_bits.h"

namespace ferry {
namespace {

// A number of layers, in a checkpoint or not, that is cut again or not.
struct Part {
  std::size_t layers = 1;
  bool checkpoint = true;
  bool cut = false;
  bool early_stop = true;
  std::vector<SavedChoice> choices;
};

void showValue(const Part& part, std::ostream& os) {
  os << part.layers << (part.checkpoint ? "c" : "") << (part.cut ? "n" : "")
     << (part.early_stop ? "e" : "");
  for (const SavedChoice choice : part.choices) os << static_cast<int>(choice);
}

rc::Gen<Part> part() {
  const auto choice =
      one_of<SavedChoice>({SavedChoice::kRecompute, SavedChoice::kKeep, SavedChoice::kOffload});
  return rc::gen::build<Part>(
      rc::gen::set(&Part::layers, one_of<std::size_t>({1, 2, 3, 5})),
      rc::gen::set(&Part::checkpoint, one_of<bool>({true, true, false})), rc::gen::set(&Part::cut),
      rc::gen::set(&Part::early_stop),
      rc::gen::set(&Part::choices,
                   rc::gen::resize(6, rc::gen::container<std::vector<SavedChoice>>(choice))));
}

// How a model runs. Without checkpoints the parts are cut alike.
struct Cuts {
  const RandomModel* model;
  std::vector<Part> parts;
  bool checkpoints;

  torch::Tensor run(torch::Tensor x, std::size_t begin, std::size_t end, std::size_t depth) const {
    while (begin < end) {
      const Part& part = parts[(begin + 3 * depth) % parts.size()];
      const std::size_t to = std::min(end, begin + part.layers);
      const auto body = [this, begin, to, depth, cut = part.cut](const torch::Tensor& in) {
        if (cut && depth < 2) return run(in, begin, to, depth + 1);
        return model->forward(in, begin, to, [] { return NoOffloadGuard(); });
      };
      const auto options = CheckpointOptions().early_stop(part.early_stop).choices(part.choices);
      x = part.checkpoint && checkpoints ? checkpoint(options, body, x) : body(x);
      begin = to;
    }
    return x;
  }
};

std::vector<torch::Tensor> run(const Cuts& cuts, int order, bool retain,
                               const std::optional<Offload>& offload) {
  torch::manual_seed(11);
  const RandomModel& model = *cuts.model;
  std::unique_ptr<OffloadGuard> guard;
  if (offload) guard = std::make_unique<OffloadGuard>(*offload);
  const auto x = torch::randn({RandomModel::kRows, RandomModel::kColumns}, torch::kFloat64);
  const auto y = cuts.run(x.matmul(model.weights[0]), 0, model.layers.size(), 0);
  const auto loss = model.loss(y);
  std::vector<torch::Tensor> found;
  if (retain) {
    for (auto& gradient : torch::autograd::grad({loss}, model.weights, {}, true, false, true)) {
      if (gradient.defined()) found.push_back(std::move(gradient));
    }
  }
  for (auto& each : derivatives(loss, model.weights, order)) found.push_back(std::move(each));
  return found;
}

RC_GTEST_PROP(CheckpointProperty, DerivativesAreTheSameBits, ()) {
  const RandomModel model(*gen_layers());
  const auto parts =
      *rc::gen::resize(8, rc::gen::nonEmpty(rc::gen::container<std::vector<Part>>(part())));
  const int order = *one_of<int>({1, 2, 3});
  const bool retain = *rc::gen::arbitrary<bool>();
  std::optional<Offload> offload;
  if (*rc::gen::arbitrary<bool>()) {
    offload.emplace(OffloadOptions()
                        .min_bytes(*one_of<std::int64_t>({0, 3000}))
                        .window_tensors(*one_of<std::int64_t>({1, 3, kUnlimited}))
                        .prefetch(*one_of<std::int64_t>({0, 5000, kUnlimited})));
  }
  const auto plain = run({&model, parts, false}, order, retain, std::nullopt);
  const CheckpointStatistics before = checkpoint_statistics();
  for (int step = 0; step < 2; ++step) {
    expect_same(plain, run({&model, parts, true}, order, retain, offload));
  }
  const CheckpointStatistics after = checkpoint_statistics();
  RC_ASSERT(after.alive == 0);
  if (offload) RC_ASSERT(offload->empty());
  RC_CLASSIFY(order == 3 && after.recomputes - before.recomputes > 4, "third order, recomputed");
  RC_CLASSIFY(after.stopped_early > before.stopped_early, "stopped early");
  RC_CLASSIFY(after.kept > before.kept, "kept");
  RC_CLASSIFY(offload && after.passed_on > before.passed_on, "passed on");
}

}  // namespace
}  // namespace ferry
