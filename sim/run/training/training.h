// A training as PyTorch runs it: steps of forward, backward and the optimizer's own step.
//
// The names are those of torch.optim. Its three implementations differ in their temporary memory:
// `foreach` has one list of temporaries for all parameters of a dtype, `for-loop` has those of one
// parameter, and `fused` has none. State is made in the first step, in the order of the parameters.
// A new cached block may then lie where the next step needs a larger one. So the memory of a step
// is that of the third step, not of the first. Measured on PyTorch 2.11 in 68 trainings: the third
// step reserves as much as all later ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::sim {

// SGD has no state without momentum, and one tensor for each parameter with it. Adam and AdamW have
// two, in the parameter's dtype.
enum class Optimizer : std::uint8_t { kNoOptimizer, kSgd, kMomentum, kAdam, kAdamW };
enum class OptimizerImplementation : std::uint8_t { kForeach, kForLoop, kFused };

// Where the optimizer's state lives, as in torch_ferry.optimizer. On the host it visits the device
// piece by piece: after backward, or as soon as backward has a parameter's gradient, which is then
// dropped.
enum class OptimizerState : std::uint8_t { kDevice, kHost, kHostInBackward };

inline constexpr std::size_t kSteadyStep = 3;  // all later steps use the same memory

struct Training {
  Optimizer optimizer = Optimizer::kNoOptimizer;
  OptimizerImplementation implementation = OptimizerImplementation::kForeach;
  OptimizerState state = OptimizerState::kDevice;
  // If true, zero_grad drops gradients. If false, it keeps them and fills them with zeros.
  bool set_to_none = true;
  bool clip_grad_norm = false;  // torch.nn.utils.clip_grad_norm_ before each optimizer step
  bool grad_scaler = false;     // torch.amp.GradScaler unscales the gradients before that
  // The number of whole steps; a simulation's results are those of the last one. 0: one forward and
  // backward, with the optimizer's state from the start, and without a step of the optimizer.
  std::size_t steps = 0;
};

}  // namespace ferry::sim
