// Offloads tensors of a device's stages. ferry::Pipe makes one for each device with a stage that
// offloads (PipeOptions::stage_policies). It has an Offload of its own, which only the worker of
// the device uses, so its decisions are those of one thread.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "ferry/offload.h"
#include "real/autograd/torch_autograd.h"
#include "real/pipeline/layers.h"
#include "shared/pipeline/stage_policy.h"
#include "shared/seam/hooks.h"

namespace ferry::real {

class StageMover : public std::enable_shared_from_this<StageMover> {
 public:
  // The parameters and buffers of `module` are exempt.
  StageMover(const OffloadOptions& options, const torch::nn::Module& module) : offload_(options) {
    offload_.exempt(module);
  }
  const Offload& offload() const { return offload_; }

  // Wraps a stage by its policy. Each micro-batch is a run of the Offload.
  PipeLayers::Function stage(PipeLayers::Function function, StagePolicy policy);
  // Returns the hooks of the latest run. They are for the loss after a stage that offloads, and for
  // the inputs of a stage that is recomputed.
  std::shared_ptr<Hooks<at::Tensor>> hooks();

 private:
  class Latest;

  Offload offload_;
  std::shared_ptr<Hooks<at::Tensor>> latest_;
};

}  // namespace ferry::real
