// The batch of a step: its input, and the expected output.
#pragma once

#include <torch/types.h>

namespace ferry::real::train {

struct Batch {
  torch::Tensor input;
  torch::Tensor target;
};

}  // namespace ferry::real::train
