// A training as PyTorch runs it: steps of forward, backward and the optimizer's own step.
//
// The names are torch.optim's. Its three implementations differ in what they allocate for a
// moment: `foreach` one list of temporaries for all parameters of a dtype, `for-loop` those of one
// parameter, `fused` none. State is made in the first step, in the order of the parameters, and a
// new cached block then lies where the next step wants a larger one: so a step's memory is the
// third one's, not the first's. Measured on PyTorch 2.11 in 68 trainings: the third step reserves
// what all later ones do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::sim {

// SGD has no state without momentum, one tensor for each parameter with it, Adam and AdamW two, in
// the parameter's dtype.
enum class Optimizer : std::uint8_t { kNoOptimizer, kSgd, kMomentum, kAdam, kAdamW };
enum class OptimizerImplementation : std::uint8_t { kForeach, kForLoop, kFused };

inline constexpr std::size_t kSteadyStep = 3;  // whose memory is that of all later ones

struct Training {
  Optimizer optimizer = Optimizer::kNoOptimizer;
  OptimizerImplementation implementation = OptimizerImplementation::kForeach;
  // What zero_grad does with gradients: they go, or they stay and are filled with zeros.
  bool set_to_none = true;
  bool clip_grad_norm = false;  // torch.nn.utils.clip_grad_norm_ before each optimizer step
  bool grad_scaler = false;     // torch.amp.GradScaler unscales the gradients before it
  // So many whole steps; what a simulation tells is the last one's. 0: one forward and backward,
  // with the optimizer's state there from the start, and no step of the optimizer.
  std::size_t steps = 0;
};

}  // namespace ferry::sim
