// A model of `ferry train` on the GPU, small, and steps of it: what a proof compares.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "real/train/gpt.h"
#include "real/train/resnet.h"
#include "real/train/segment.h"

namespace ferry::real {

using Tensors = std::vector<at::Tensor>;

enum class TrainedModel : std::uint8_t { kGpt, kGptWithDropout, kResnet };

inline std::string name(TrainedModel model) {
  constexpr const char* kNames[] = {"Gpt", "GptWithDropout", "Resnet"};
  return kNames[static_cast<std::size_t>(model)];
}

// Weights and data are functions of the model's kind alone, and a step's random numbers too: two
// steps make the same bits, but for a normalisation's running statistics.
class Trained {
 public:
  explicit Trained(TrainedModel kind, train::Segments segments = train::Segments::kPlain) {
    torch::manual_seed(1);
    if (kind == TrainedModel::kResnet) {
      make_resnet(segments);
    } else {
      make_gpt(segments, kind == TrainedModel::kGptWithDropout ? 0.1 : 0.0);
    }
  }

  torch::nn::Module& module() { return *module_; }
  const at::Tensor& input() const { return input_; }

  at::Tensor loss() {
    if (auto* const gpt = std::get_if<train::Gpt>(&model_)) {
      return torch::nn::functional::cross_entropy((*gpt)->forward(input_).flatten(0, 1),
                                                  target_.flatten());
    }
    return torch::nn::functional::cross_entropy(std::get<train::Resnet>(model_)->forward(input_),
                                                target_);
  }

  // The loss and the gradients of a forward and a backward under whatever is in force.
  Tensors step() {
    torch::manual_seed(7);
    return gradients();
  }
  // Likewise, of a model that draws nothing: the generators are the process's.
  Tensors gradients() {
    module_->zero_grad();
    const at::Tensor loss = this->loss();
    loss.backward();
    Tensors results = {loss.detach().clone()};
    for (const at::Tensor& parameter : module_->parameters()) {
      results.push_back(parameter.grad().clone());
    }
    return results;
  }

 private:
  void make_gpt(train::Segments segments, double dropout) {
    train::GptOptions options;
    options.layers = 3;
    options.width = 64;
    options.context = 64;
    options.dropout = dropout;
    options.segments = segments;
    adopt(train::Gpt(options));
    const auto whole = at::device(at::kCUDA).dtype(at::kLong);
    input_ = torch::randint(options.vocabulary, {4, options.context}, whole);
    target_ = torch::randint(options.vocabulary, {4, options.context}, whole);
  }
  void make_resnet(train::Segments segments) {
    train::ResnetOptions options;
    options.layers = 1;
    options.segments = segments;
    adopt(train::Resnet(options));
    input_ = torch::randn({8, 3, 32, 32}, at::kCUDA);
    target_ = torch::randint(options.classes, {8}, at::device(at::kCUDA).dtype(at::kLong));
  }
  template <class Holder>
  void adopt(Holder model) {
    model->to(at::kCUDA);
    model->train();
    module_ = model.ptr();
    model_ = std::move(model);
  }

  std::variant<std::monostate, train::Gpt, train::Resnet> model_;
  std::shared_ptr<torch::nn::Module> module_;
  at::Tensor input_;
  at::Tensor target_;
};

// The first that differs by a bit, in words; empty: none.
inline std::string difference(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " and " + std::to_string(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const at::Tensor left = a[i].cpu().contiguous();
    const at::Tensor right = b[i].cpu().contiguous();
    if (left.sizes() == right.sizes() && left.view(at::kInt).equal(right.view(at::kInt))) continue;
    return (i == 0 ? std::string("the loss") : "gradient " + std::to_string(i)) + " differs by " +
           std::to_string((left - right).abs().max().item<float>());
  }
  return {};
}

}  // namespace ferry::real
