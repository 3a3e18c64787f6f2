// Forward and backward of one step: at once, by micro-batches, or in the stages of a pipeline.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "real/train/batch.h"

namespace ferry::real::train {

class Policy;
class Workload;

// Accumulates gradients and returns the mean loss of the micro-batches, without graph. The policy
// guards each micro-batch by itself, or with stages all of them together. `microbatches` must
// divide the batch.
torch::Tensor forward_and_backward(Workload& workload, Policy& policy, const Batch& batch,
                                   std::int64_t microbatches);

}  // namespace ferry::real::train
