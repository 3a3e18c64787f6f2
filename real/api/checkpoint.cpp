#include "ferry/checkpoint.h"

#include <c10/util/Exception.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <typeindex>
#include <utility>

#include "real/api/segments.h"
#include "real/api/watched.h"
#include "real/autograd/thread_end.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/torch_compute.h"
#include "real/tensors/torch_error.h"
#include "shared/checkpoint/checkpointer.h"
#include "shared/checkpoint/sequential.h"

namespace ferry {
namespace {

using real::TorchAutograd;
using real::TorchCompute;

// Never destroyed, because graphs in static variables may outlive it.
Checkpointer<TorchCompute, TorchAutograd>& checkpointer() {
  static auto* const checkpointer =
      new Checkpointer<TorchCompute, TorchAutograd>(TorchCompute(), TorchAutograd());
  return *checkpointer;
}

CheckpointContext here() { return checkpoint_context(TorchAutograd().hooks()); }

CoreCheckpointOptions to_core(const CheckpointOptions& options) {
  CoreCheckpointOptions core;
  core.early_stop = options.early_stop();
  core.preserve_rng_state = options.preserve_rng_state();
  core.determinism_check = options.determinism_check();
  core.debug = options.debug();
  core.context_fn = options.context_fn();
  core.choices = options.choices();
  return core;
}

// TorchScript profiles its first calls and then runs other code, which saves other tensors. So
// inside a checkpoint a script runs as it is written, in forward and in recomputes.
checkpoint_impl::Run as_written(checkpoint_impl::Run function) {
  return [function = std::move(function)](checkpoint_impl::Tensors tensors) {
    const torch::jit::GraphOptimizerEnabledGuard scripts(false);
    function(std::move(tensors));
  };
}

// True once for each checkpointed function, as Python warns once per line. Each lambda has its own
// type; modules have the type of their class. Always true under WarnAlways.
bool is_new_place(std::type_index function) {
  static std::mutex mutex;
  static std::set<std::type_index>* const warned = new std::set<std::type_index>;
  const std::lock_guard lock(mutex);
  return warned->insert(function).second || c10::WarningUtils::get_warnAlways();
}

}  // namespace

namespace checkpoint_impl {

void run(const CheckpointOptions& options, Tensors inputs, Run again, Run forward) {
  const CheckpointScope observed = real::begin_segment(inputs, false);
  const real::Watched watched(options);
  checkpointer().run(std::move(inputs), to_core(options),
                     watched.again(as_written(std::move(again))),
                     watched.forward(as_written(std::move(forward))));
}

Tensors run_reentrant(const CheckpointOptions& options, const Tensors& inputs, Map function,
                      Rethrow rethrow) {
  if (options.debug() || options.context_fn() || !options.choices().empty()) {
    throw real::torch_error(ValueError(
        "Passing `context_fn`, `choices` or `debug` is only supported when reentrant is off."));
  }
  if (std::ranges::none_of(inputs,
                           [](const auto& x) { return x.defined() && x.requires_grad(); })) {
    if (is_new_place(function.target_type())) TORCH_WARN(checkpoint_text::kNoInputRequiresGrad);
  }
  const CheckpointScope observed = real::begin_segment(inputs, true);
  const real::Watched watched(options, rethrow);
  // The first call is that of forward.
  const auto either = [forward = watched.forward(function), again = watched.again(function),
                       ran = std::make_shared<std::atomic<bool>>(false)](Tensors tensors) {
    return ran->exchange(true) ? again(std::move(tensors)) : forward(std::move(tensors));
  };
  return checkpointer().run_reentrant(inputs, to_core(options), either);
}

void refuse_output() {
  throw real::torch_error(ValueError(
      "ferry::checkpoint: with reentrant on, the function has to return a tensor, or a vector, an "
      "array or a tuple of tensors"));
}

struct Scope::State {
  std::optional<CheckpointContextGuard<TorchAutograd>> context;
  std::optional<ExecGroupGuard<TorchAutograd>> group;

  static std::unique_ptr<State> with(CheckpointContext context) {
    auto state = std::make_unique<State>();
    state->context.emplace(TorchAutograd(), std::move(context));
    return state;
  }
  static std::unique_ptr<State> early_stop(bool early_stop) {
    CheckpointContext next = here();
    next.early_stop = early_stop;
    return with(std::move(next));
  }
  static std::unique_ptr<State> debug(bool debug) {
    CheckpointContext next = here();
    next.debug = debug;
    return with(std::move(next));
  }
  static std::unique_ptr<State> in(std::shared_ptr<ExecGroup> group) {
    auto state = std::make_unique<State>();
    state->group.emplace(TorchAutograd(), std::move(group));
    return state;
  }
};

Scope::Scope(std::unique_ptr<State> state) : state_(std::move(state)) {}
Scope::~Scope() { real::leave_at_thread_end(state_); }

}  // namespace checkpoint_impl

CheckpointEarlyStopGuard::CheckpointEarlyStopGuard(bool early_stop)
    : Scope(State::early_stop(early_stop)) {}
CheckpointDebugGuard::CheckpointDebugGuard(bool debug) : Scope(State::debug(debug)) {}

GraphExecGroup::GraphExecGroup() : group_(std::make_shared<ExecGroup>()) {}
GraphExecGroup::Guard::Guard(const GraphExecGroup& group) : Scope(State::in(group.group_)) {}

torch::Tensor checkpoint_sequential(const torch::nn::Sequential& functions, std::int64_t segments,
                                    torch::Tensor input, const CheckpointOptions& options) {
  std::vector<std::function<torch::Tensor(torch::Tensor)>> chain;
  for (const torch::nn::AnyModule& module : *functions) {
    chain.emplace_back(
        [module = module](torch::Tensor x) mutable { return module.forward(std::move(x)); });
  }
  return checkpoint_sequential(std::move(chain), segments, std::move(input), options);
}

torch::Tensor checkpoint_sequential(
    std::vector<std::function<torch::Tensor(torch::Tensor)>> functions, std::int64_t segments,
    torch::Tensor input, const CheckpointOptions& options) {
  const auto length = static_cast<std::int64_t>(functions.size());
  torch::Tensor x = std::move(input);
  const auto cut = real::with_torch_errors([&] { return sequential_segments(length, segments); });
  for (const SequentialSegment& segment : cut) {
    const auto run = [chain =
                          std::vector(std::make_move_iterator(functions.begin() + segment.begin),
                                      std::make_move_iterator(functions.begin() + segment.end))](
                         torch::Tensor value) {
      for (const auto& function : chain) value = function(std::move(value));
      return value;
    };
    x = segment.checkpoint ? checkpoint(options, run, std::move(x)) : run(std::move(x));
  }
  return x;
}

bool is_checkpointing() { return here().checkpointing; }
bool is_recomputing() { return here().recomputing; }

CheckpointStatistics checkpoint_statistics() { return checkpointer().statistics(); }

}  // namespace ferry
