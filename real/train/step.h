// One step's forward and backward: at once, micro-batch by micro-batch, or in a pipeline's stages.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "real/train/batch.h"

namespace ferry::real::train {

class Policy;
class Workload;

// Leaves gradients, and returns the loss without its graph: of several micro-batches the mean. Each
// has its own run of the policy's, but in stages, where the policy is around them all. `chunks`
// divides the batch.
torch::Tensor forward_and_backward(Workload& workload, Policy& policy, const Batch& batch,
                                   std::int64_t chunks);

}  // namespace ferry::real::train
