// The layers of a pipeline as the core's stages.
#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "ferry/pipe.h"
#include "real/pipeline/layer_skips.h"
#include "shared/skip/layout.h"

namespace ferry::real {

class PipeLayers {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Function = std::function<Tensors(Tensors)>;

  // The balance adds up to the layers. Throws SkipError where their skip tensors do not fit.
  PipeLayers(const torch::nn::SequentialImpl& layers, const std::vector<std::int64_t>& balance);

  std::size_t stages() const { return first_.size() - 1; }
  void move(std::size_t stage, const c10::Device& device);
  const SkipLayout& layout() const { return layout_; }

  // Runs stage `number`. `list`: what the first stage is given is a list of tensors, be it of one.
  static Function stage(std::shared_ptr<PipeLayers> layers, std::size_t number, bool list);

 private:
  Tensors run(std::size_t stage, Tensors values, bool list);

  std::vector<torch::nn::AnyModule> layers_;
  std::vector<DeclaredSkips> skips_;  // by layer
  std::vector<std::size_t> first_;    // layer, by stage; and the end
  SkipLayout layout_;
  // Whether a stage's last layer returns a list. A layer's type says so, and is known when it ran.
  std::vector<std::atomic<bool>> gives_list_;
};

// The options with what they leave open: as many devices as are used. Throws std::invalid_argument
// where they contradict themselves, or the layers do not fit in such stages.
PipeOptions completed(PipeOptions options, const torch::nn::SequentialImpl& layers);

}  // namespace ferry::real
