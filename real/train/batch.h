// What a step learns: its input, and what the model is to say.
#pragma once

#include <torch/types.h>

namespace ferry::real::train {

struct Batch {
  torch::Tensor input;
  torch::Tensor target;
};

}  // namespace ferry::real::train
