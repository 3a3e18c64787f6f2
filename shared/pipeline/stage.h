// Parts that both pipelines use: stages, devices, and the options of checkpointed micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/pipeline/pipeline_rules.h"
#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/invariant.h"
#include "shared/transfer/transfer.h"

namespace ferry {

// The micro-batches that backward recomputes: all; all but the last, whose backward comes at once;
// or none. Without grad mode there are none.
enum class CheckpointMode : std::uint8_t { kAlways, kExceptLast, kNever };
inline constexpr std::string_view kCheckpointModeNames[] = {"always", "except_last", "never"};
constexpr std::string_view name(CheckpointMode mode) {
  return kCheckpointModeNames[static_cast<std::size_t>(mode)];
}

// Returns the number of checkpointed micro-batches. Micro-batch i is checkpointed if i is less than
// this number.
inline std::size_t checkpoint_stop(CheckpointMode mode, std::size_t microbatches) {
  if (mode == CheckpointMode::kNever || microbatches == 0) return 0;
  return mode == CheckpointMode::kAlways ? microbatches : microbatches - 1;
}

struct CorePipelineOptions {
  CheckpointMode checkpoint = CheckpointMode::kExceptLast;
  std::vector<bool> checkpointed_stages;  // whether each stage is checkpointed; empty: all are
  // A recompute gets the random numbers of forward.
  bool preserve_rng_state = true;

  bool checkpoints(std::size_t stage) const {
    return checkpointed_stages.empty() || checkpointed_stages.at(stage);
  }
};

// The data that passes between stages: values of the micro-batch, and skip tensors by route.
template <class Item>
struct Crossings {
  std::vector<Item> values;
  std::map<std::size_t, Item> skips;
};

template <class A>
struct PipelineStage {
  using Values = std::vector<typename A::Value>;
  std::size_t device = 0;
  // Runs the stage on any micro-batch, in the worker of its device. Backward calls it once more if
  // the stage is checkpointed. It may stash and pop (shared/skip/).
  using Function = std::function<Values(Values)>;
  Function function;
};

// The thread-local state of the thread that began the step. Workers run stages with it.
template <PipelineAutograd A>
class CallersState {
 public:
  CallersState(A autograd, const PipelineRules& rules)
      : autograd_(autograd),
        grad_mode_(rules.takes_callers_mode() ? autograd.grad_mode() : true),
        hooks_(autograd.hooks()),
        ambient_(autograd.ambient({}, /*random=*/false)) {}

  bool grad_mode() const { return grad_mode_; }

  // While it lives, the thread that made it has that state.
  class Scope {
   public:
    explicit Scope(const CallersState& state)
        : ambient_(state.autograd_, state.ambient_),
          grad_(state.autograd_, state.grad_mode_),
          hooks_(state.autograd_, state.hooks_) {}

   private:
    typename A::AmbientScope ambient_;
    typename A::GradModeScope grad_;
    typename A::HooksScope hooks_;
  };

 private:
  A autograd_;
  bool grad_mode_;
  HookStack<typename A::Tensor> hooks_;
  typename A::Ambient ambient_;
};

// The devices, with the streams for each micro-batch. They compute on the caller's streams.
template <PipelineDevice D>
class Places {
 public:
  explicit Places(std::vector<D> devices) : devices_(std::move(devices)) {
    for (D& device : devices_) compute_.push_back(device.compute_stream());
  }
  Place<D> of(std::size_t device, std::size_t microbatch) {
    invariant(device < devices_.size(), "a stage is on one of the pipeline's devices");
    return {device, devices_[device], compute_[device],
            devices_[device].transfer_stream(static_cast<std::uint32_t>(microbatch))};
  }

 private:
  std::vector<D> devices_;
  std::vector<typename D::Stream> compute_;
};

}  // namespace ferry
