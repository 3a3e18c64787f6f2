// The layers of a ferry::Pipe, as the stages of the core's pipelines (shared/pipeline/stage.h).
//
// A stage runs its layers one after the other and passes on what each returns: a tensor, a vector,
// a tuple or a pair (ferry/pipe_tuple.h). Each layer may stash and pop only what it declares
// (layer_skips.h). A recompute does not count a micro-batch in the running statistics of norms
// again.
//
// completed() checks the options; PipeLayers relies on it.
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

  // The balance must add up to the number of layers. Throws SkipError if their skip tensors do not
  // match.
  PipeLayers(const torch::nn::SequentialImpl& layers, const std::vector<std::int64_t>& balance);

  std::size_t stages() const { return first_.size() - 1; }
  void move(std::size_t stage, const c10::Device& device);
  const SkipLayout& layout() const { return layout_; }

  // Returns a function that runs stage `number`. The first layer of the first stage gets its
  // tensors in `form`.
  static Function stage(std::shared_ptr<PipeLayers> layers, std::size_t number,
                        const pipe_impl::Form& form);

 private:
  Tensors run(std::size_t stage, Tensors values, const pipe_impl::Form& form);

  std::vector<torch::nn::AnyModule> layers_;
  std::vector<DeclaredSkips> skips_;                  // by layer
  std::vector<std::size_t> first_;                    // the first layer of each stage; then the end
  std::vector<std::vector<at::Tensor*>> statistics_;  // of each stage's norms
  SkipLayout layout_;
  // The form in which the last layer of a stage returns its tensors. It is known once the layer has
  // run.
  std::vector<std::atomic<const pipe_impl::Form*>> gives_;
};

// Fills in default options and leaves only the devices that are used. Throws ValueError if options
// contradict each other, or the layers do not fit into the stages.
PipeOptions completed(PipeOptions options, const torch::nn::SequentialImpl& layers);

}  // namespace ferry::real
