// What moves to the host and back of a device's stages: an Offload of its own, which the device's
// worker alone uses, so that its decisions are those of one thread.
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
  // What `module` owns stays.
  StageMover(const OffloadOptions& options, const torch::nn::Module& module) : offload_(options) {
    offload_.exempt(module);
  }
  const Offload& offload() const { return offload_; }

  // The stage by that policy. Each micro-batch is a run of the Offload.
  PipeLayers::Function stage(PipeLayers::Function function, StagePolicy policy);
  // The hooks of the latest run: for the loss behind a stage that offloads, and for the inputs of
  // one that runs again.
  std::shared_ptr<Hooks<at::Tensor>> hooks();

 private:
  class Latest;

  Offload offload_;
  std::shared_ptr<Hooks<at::Tensor>> latest_;
};

}  // namespace ferry::real
