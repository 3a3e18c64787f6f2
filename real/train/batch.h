// The batch of a step: its inputs, and the expected outputs. A workload makes it (workload.h).
#pragma once

#include <torch/types.h>

namespace ferry::real::train {

struct Batch {
  torch::Tensor input;
  torch::Tensor target;
};

}  // namespace ferry::real::train
