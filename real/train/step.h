// One step's forward and backward: at once, micro-batch by micro-batch, or in a pipeline's stages.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "real/train/batch.h"

namespace ferry::real::train {

class Policy;
class Workload;

// Accumulates gradients, and returns the loss without its graph: the mean over micro-batches. The
// policy guards each micro-batch by itself, or in stages all of them together. `microbatches` must
// divide the batch.
torch::Tensor forward_and_backward(Workload& workload, Policy& policy, const Batch& batch,
                                   std::int64_t microbatches);

}  // namespace ferry::real::train
