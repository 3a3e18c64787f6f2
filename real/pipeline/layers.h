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

  // The balance must add up to the layers. Throws SkipError if their skip tensors do not fit.
  PipeLayers(const torch::nn::SequentialImpl& layers, const std::vector<std::int64_t>& balance);

  std::size_t stages() const { return first_.size() - 1; }
  void move(std::size_t stage, const c10::Device& device);
  const SkipLayout& layout() const { return layout_; }

  // Runs stage `number`. The first stage's first layer takes its tensors in that form.
  static Function stage(std::shared_ptr<PipeLayers> layers, std::size_t number,
                        const pipe_impl::Form& form);

 private:
  Tensors run(std::size_t stage, Tensors values, const pipe_impl::Form& form);

  std::vector<torch::nn::AnyModule> layers_;
  std::vector<DeclaredSkips> skips_;                  // indexed by layer
  std::vector<std::size_t> first_;                    // each stage's first layer; then the end
  std::vector<std::vector<at::Tensor*>> statistics_;  // of each stage's norms, in their modules
  SkipLayout layout_;
  // The form in which a stage's last layer returns its tensors, which is known once it has run.
  std::vector<std::atomic<const pipe_impl::Form*>> gives_;
};

// The options with defaults filled in: as many devices as are used. Throws ValueError if
// they contradict each other, or the layers do not fit in such stages.
PipeOptions completed(PipeOptions options, const torch::nn::SequentialImpl& layers);

}  // namespace ferry::real
