#include "real/train/step.h"

#include <cstddef>

#include "real/train/policy.h"
#include "real/train/workload.h"

namespace ferry::real::train {

torch::Tensor forward_and_backward(Workload& workload, Policy& policy, const Batch& batch,
                                   std::int64_t microbatches) {
  if (workload.is_pipelined()) {
    const auto guard = policy.guard();
    return workload.pipelined_step(batch);
  }
  const auto inputs = batch.input.chunk(microbatches);
  const auto targets = batch.target.chunk(microbatches);
  torch::Tensor sum;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto guard = policy.guard();
    torch::Tensor loss = workload.loss({inputs[i], targets[i]});
    if (microbatches > 1) loss = loss / microbatches;
    loss.backward();
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  return sum;
}

}  // namespace ferry::real::train
