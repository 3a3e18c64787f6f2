// The pipeline that runs backward itself, in the order of a schedule (1F1B, interleaved). A forward
// of one micro-batch may follow the backward of another, so few micro-batches are alive at once.
//
//   ScheduledPipeline<SimDevice, SimAutograd, SimWorkers> pipeline(devices, autograd, workers, …);
//   losses = pipeline.step(microbatches, loss);      // gradients accumulate in the leaves
//
// The graph is cut between stages (shared/pipeline/cut_stage.h), so one stage of one micro-batch
// can run backward alone. Values, skip tensors and gradients go straight from the device that made
// them to the device that takes them (shared/transfer/transfer.h). A stage recomputes before it
// waits for its gradient.
//
// The micro-batches of a stage run backward from the first to the last. So the sums in the leaves
// have the same bits as in a training that takes the micro-batches one by one.
//
// Sources: torch/distributed/pipelining/schedules.py and stage.py, with the same actions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/pipeline/cut_stage.h"
#include "shared/pipeline/pipeline_rules.h"
#include "shared/pipeline/schedule.h"
#include "shared/pipeline/shared_bytes.h"
#include "shared/pipeline/stage.h"
#include "shared/pipeline/workers.h"
#include "shared/seam/error.h"
#include "shared/seam/invariant.h"

namespace ferry {

template <PipelineDevice D, PipelineAutograd A, Workers W>
class ScheduledPipeline {
 public:
  using Value = typename A::Value;
  using Values = std::vector<Value>;
  // Returns the loss of one micro-batch, a scalar, from the outputs of the last stage. The function
  // itself applies any factor, such as one over the number of micro-batches.
  using Loss = std::function<Value(Values, std::size_t microbatch)>;

  // Stage s is on device s % n. With n devices, each has stages / n of them.
  ScheduledPipeline(std::vector<D> devices, A autograd, W workers,
                    std::vector<typename PipelineStage<A>::Function> stages, SkipLayout layout,
                    ScheduleKind kind, const CorePipelineOptions& options, Rules rules = {})
      : devices_(std::move(devices)),
        autograd_(std::move(autograd)),
        workers_(std::move(workers)),
        stages_(std::move(stages)),
        layout_(std::make_shared<const SkipLayout>(std::move(layout))),
        kind_(kind),
        options_(options),
        rules_(rules) {
    if (devices_.empty() || stages_.empty() || stages_.size() % devices_.size() != 0) {
      throw make_error<typename A::Tensor>(
          ValueError("expected the same number of stages on each device"));
    }
    input_hooks_.resize(stages_.size());
  }

  // Saves the inputs of a checkpointed stage under these hooks until its recompute. Null: the
  // inputs stay on the device.
  void save_inputs(std::size_t stage, std::shared_ptr<Hooks<typename A::Tensor>> hooks) {
    input_hooks_.at(stage) = std::move(hooks);
  }

  // Runs one step. Returns the losses, without graph, in the order of the micro-batches.
  Values step(std::vector<Values> microbatches, Loss loss) {
    OneStep step(*this, std::move(microbatches), std::move(loss));
    workers_.run(step.tasks());
    invariant(step.is_over(), "a step ends with no micro-batch alive");
    return std::move(step.losses);
  }

 private:
  struct OneStep;

  std::vector<D> devices_;
  A autograd_;
  W workers_;
  const std::vector<typename PipelineStage<A>::Function> stages_;
  const std::shared_ptr<const SkipLayout> layout_;
  const ScheduleKind kind_;
  const CorePipelineOptions options_;
  const PipelineRules rules_;
  std::vector<std::shared_ptr<Hooks<typename A::Tensor>>> input_hooks_;  // by stage
};

// One step. Its tasks run in the workers, in the order of the schedule. A task uses only its own
// inputs and outputs.
template <PipelineDevice D, PipelineAutograd A, Workers W>
struct ScheduledPipeline<D, A, W>::OneStep {
  using Owner = ScheduledPipeline;

  OneStep(Owner& pipeline, std::vector<Values> given, Loss loss_function)
      : owner(pipeline),
        autograd(pipeline.autograd_),
        places(pipeline.devices_),
        callers(pipeline.autograd_, pipeline.rules_),
        loss(std::move(loss_function)),
        count(given.size()),
        losses(given.size()),
        runs(pipeline.stages_.size() * given.size()) {
    arriving.resize(runs.size());
    returning.resize(runs.size());
    for (std::size_t i = 0; i < count; ++i) arriving[i].values = std::move(given[i]);
    bytes.resize(count, SharedBytes<D>(owner.layout_, owner.rules_));
    checkpointed = checkpoint_stop(pipeline.options_.checkpoint, count);
    if (!owner.rules_.checkpoints_some()) checkpointed = count - checkpointed;
    if (!callers.grad_mode()) checkpointed = 0;
  }

  std::size_t device_of(std::size_t stage) const { return stage % owner.devices_.size(); }
  std::size_t index(std::size_t stage, std::size_t i) const { return stage * count + i; }
  Place<D> place(std::size_t stage, std::size_t i) { return places.of(device_of(stage), i); }
  bool runs_again(std::size_t stage, std::size_t i) const {
    return i < checkpointed &&
           (owner.options_.checkpoints(stage) || !owner.rules_.chooses_stages());
  }
  bool is_last(std::size_t stage) const { return stage + 1 == owner.stages_.size(); }
  bool is_over() const {
    return std::none_of(runs.begin(), runs.end(), [](const auto& run) { return run.has_value(); });
  }

  std::vector<WorkerTask> tasks() {
    const std::size_t n = owner.devices_.size();
    std::vector<WorkerTask> list;
    std::vector<std::size_t> forwards(runs.size());
    std::vector<std::size_t> backwards(runs.size());
    const auto add = [&](std::size_t device, std::vector<std::size_t> after, auto run) {
      list.push_back({device, std::move(after), std::move(run)});
      return list.size() - 1;
    };
    const auto actions = with_errors<typename A::Tensor>(
        [&] { return in_order(make_schedule(owner.kind_, n, owner.stages_.size() / n, count)); });
    for (const auto& [device, action] : actions) {
      const std::size_t s = action.stage, i = action.microbatch;
      const std::size_t here = index(s, i);
      if (action.forward) {
        std::vector<std::size_t> after;
        if (s > 0) after.push_back(forwards[index(s - 1, i)]);
        forwards[here] = add(device, after, [this, s, i] { forward(s, i); });
        continue;
      }
      if (runs_again(s, i) && owner.rules_.recomputes_early()) {
        add(device, {}, [this, s, i] { recompute(s, i); });
      }
      std::vector<std::size_t> after;
      if (!is_last(s)) after.push_back(backwards[index(s + 1, i)]);
      backwards[here] = add(device, after, [this, s, i] { backward(s, i); });
    }
    return list;
  }

  void forward(std::size_t s, std::size_t i) {
    invariant(!runs[index(s, i)], "a stage takes a micro-batch forward once");
    const Place<D> here = place(s, i);
    const typename D::StreamScope on(here.device, here.compute);
    const typename CallersState<A>::Scope scope(callers);
    typename PipelineStage<A>::Function function = owner.stages_[s];
    if (is_last(s)) {
      function = [stage = std::move(function), this, i](Values values) {
        return Values{loss(stage(std::move(values)), i)};
      };
    }
    Crossings<Value> arrived = take(arriving, s, i, before(s), &SkipRoute::from);
    bytes[i].enter(here.device, tensors_of(arrived));
    auto& run = runs[index(s, i)];
    run.emplace(autograd, std::move(function), owner.layout_, std::move(arrived));
    if (is_last(s)) run->ends_in_loss();
    Crossings<Value> leaving = runs_again(s, i)
                                   ? run->forward_checkpointed(owner.options_.preserve_rng_state)
                                   : run->forward();
    bytes[i].leave(here.device, tensors_of(leaving), s, runs_again(s, i));
    if (owner.input_hooks_[s] && runs_again(s, i) && owner.rules_.puts_inputs_away()) {
      run->put_away(owner.input_hooks_[s]);
    }
    if (is_last(s)) {
      losses[i] = autograd.leaf(autograd.tensor(leaving.values.front()), false);
    }
    send(arriving, s, i, after(s), &SkipRoute::to, std::move(leaving));
  }

  Crossings<std::optional<typename D::Tensor>> tensors_of(const Crossings<Value>& crossing) const {
    Crossings<std::optional<typename D::Tensor>> found;
    for (const Value& value : crossing.values) found.values.push_back(tensor_of(autograd, value));
    for (const auto& [route, value] : crossing.skips) {
      found.skips.emplace(route, tensor_of(autograd, value));
    }
    return found;
  }

  void recompute(std::size_t s, std::size_t i) {
    invariant(runs[index(s, i)].has_value(), "a stage runs again what it took forward");
    const Place<D> here = place(s, i);
    const typename D::StreamScope on(here.device, here.compute);
    const typename CallersState<A>::Scope scope(callers);
    runs[index(s, i)]->recompute();
  }

  void backward(std::size_t s, std::size_t i) {
    invariant(runs[index(s, i)].has_value(), "a stage takes backward what it took forward");
    const Place<D> here = place(s, i);
    const typename D::StreamScope on(here.device, here.compute);
    const typename CallersState<A>::Scope scope(callers);
    auto& run = runs[index(s, i)];
    Crossings<Value> arrived = take(returning, s, i, after(s), &SkipRoute::to);
    if (runs_again(s, i) && !owner.rules_.recomputes_early()) run->recompute();
    run->backward(std::move(arrived));
    Crossings<Value> gradients = run->gradients();
    run.reset();
    send(returning, s, i, before(s), &SkipRoute::from, std::move(gradients));
  }

  std::optional<std::size_t> before(std::size_t s) const {
    return s > 0 ? std::optional(s - 1) : std::nullopt;
  }
  std::optional<std::size_t> after(std::size_t s) const {
    return is_last(s) ? std::nullopt : std::optional(s + 1);
  }

  // Sends results of stage s for a micro-batch, or its gradients. Values go to the next stage in
  // that direction, and each skip tensor to the other end of its route.
  void send(std::vector<Crossings<Value>>& boxes, std::size_t s, std::size_t i,
            std::optional<std::size_t> next, std::size_t SkipRoute::*end, Crossings<Value> made) {
    const auto box = [&](std::size_t stage) -> Crossings<Value>& {
      Transfer<D>(place(s, i), place(stage, i)).send();
      return boxes[index(stage, i)];
    };
    if (next) box(*next).values = std::move(made.values);
    for (auto& [route, value] : made.skips) {
      box(owner.layout_->routes()[route].*end).skips.emplace(route, std::move(value));
    }
  }
  // Takes what was sent to stage s, on its device.
  Crossings<Value> take(std::vector<Crossings<Value>>& boxes, std::size_t s, std::size_t i,
                        std::optional<std::size_t> previous, std::size_t SkipRoute::*end) {
    Crossings<Value> sent = std::exchange(boxes[index(s, i)], {});
    if (previous) receive(Transfer<D>(place(*previous, i), place(s, i)), sent.values);
    for (auto& [route, value] : sent.skips) {
      Values one = {std::move(value)};
      receive(Transfer<D>(place(owner.layout_->routes()[route].*end, i), place(s, i)), one);
      value = std::move(one.front());
    }
    return sent;
  }
  void receive(Transfer<D> transfer, Values& values) {
    std::vector<typename D::Tensor> arrived;
    for (Value& value : values) {
      if (!autograd.exists(value)) continue;
      arrived.push_back(transfer.receive(autograd.tensor(value)));
      value = autograd.leaf(arrived.back(), autograd.requires_grad(value));
    }
    transfer.take(arrived);
  }

  Owner& owner;
  A& autograd;
  Places<D> places;
  const CallersState<A> callers;
  const Loss loss;
  const std::size_t count;  // the number of micro-batches
  std::size_t checkpointed = 0;
  Values losses;
  std::vector<SharedBytes<D>> bytes;  // by micro-batch
  // These three are indexed by stage and micro-batch.
  std::vector<std::optional<CutStage<A>>> runs;
  std::vector<Crossings<Value>> arriving;
  std::vector<Crossings<Value>> returning;  // gradients on their way back
};

}  // namespace ferry
