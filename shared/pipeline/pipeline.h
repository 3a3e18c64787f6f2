// The GPipe pipeline: its backward is one ordinary backward of autograd.
//
//   Pipeline<SimDevice, SimAutograd, SimWorkers> pipeline(devices, autograd, workers, stages, …);
//   outputs = pipeline.forward(microbatches);     // then run one backward from all of them
//
// Forward goes by clock: at clock k, micro-batch i is at stage j = k - i. Each clock has two parts.
// The *fence*, on the calling thread, copies what the stages need from other devices, and adds the
// edges that order backward. The *compute* runs the stages in the workers of the devices.
//
//     … F(i) ──▶ out ──▶ recompute ──▶ copy skips ──▶ copy ──▶ in ──▶ F(i) …
//     stage j                 ▲                                        stage j + 1
//                           join ◀── fork of micro-batch i - 1, which goes backward later
//
// In backward the same nodes run from right to left. `in` announces the gradient. `copy` moves it
// on the arrival stream of stage j's device. `recompute` runs the stage meanwhile. `out` makes the
// stage wait for the gradient. The nodes live on arrival streams, so autograd's own ordering
// between nodes does not make the recompute wait.
//
// The results are on the device of the last stage. If stages fail, forward() waits for the other
// workers and throws the error of the first failed stage; nothing is left of the step then.
//
// Source: torchgpipe/pipeline.py.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/checkpoint/state.h"
#include "shared/pipeline/lane_nodes.h"
#include "shared/pipeline/pipeline_rules.h"
#include "shared/pipeline/schedule.h"
#include "shared/pipeline/shared_bytes.h"
#include "shared/pipeline/stage.h"
#include "shared/pipeline/stage_run.h"
#include "shared/pipeline/workers.h"
#include "shared/skip/stage_skips.h"
#include "shared/transfer/dependency.h"

namespace ferry {

template <PipelineDevice D, PipelineAutograd A, Workers W>
class Pipeline {
 public:
  using Value = typename A::Value;
  using Values = std::vector<Value>;

  Pipeline(std::vector<D> devices, A autograd, W workers, std::vector<PipelineStage<A>> stages,
           SkipLayout layout, const CorePipelineOptions& options, Rules rules = {})
      : devices_(std::move(devices)),
        workers_(std::move(workers)),
        stages_(std::move(stages)),
        layout_(std::make_shared<const SkipLayout>(std::move(layout))),
        options_(options),
        state_(
            std::make_shared<CheckpointState<D, A>>(devices_.at(0), std::move(autograd), rules)) {}

  // Takes a list of values for each micro-batch. Returns one list for each, in the same order.
  std::vector<Values> forward(std::vector<Values> microbatches) {
    Run run(*this, std::move(microbatches));
    for (const auto& clock : clock_cycles(run.microbatches.size(), stages_.size())) {
      for (const auto& [i, j] : clock) run.fence(i, j);
      run.compute(clock);
    }
    std::vector<Values> outputs;
    for (auto& microbatch : run.microbatches) outputs.push_back(std::move(microbatch.values));
    return outputs;
  }

  CheckpointStatistics statistics() const { return state_->statistics(); }

 private:
  struct Microbatch {
    Values values;
    std::shared_ptr<Portals<D, A>> portals;
    SharedBytes<D> bytes;
  };

  // The state of one step.
  struct Run {
    Run(Pipeline& pipeline, std::vector<Values> given)
        : owner(pipeline),
          autograd(pipeline.state_->autograd),
          places(pipeline.devices_),
          callers(autograd, pipeline.state_->rules) {
      for (Values& values : given) {
        auto portals = std::make_shared<Portals<D, A>>();
        for (std::size_t route = 0; route < pipeline.layout_->routes().size(); ++route) {
          if (!pipeline.layout_->routes()[route].crosses()) continue;
          portals->emplace(route, std::make_shared<Portal<D, A>>(autograd, rules()));
        }
        microbatches.push_back(
            {std::move(values), std::move(portals), SharedBytes<D>(pipeline.layout_, rules())});
      }
      checkpointed = checkpoint_stop(pipeline.options_.checkpoint, microbatches.size());
      if (!rules().checkpoints_some()) checkpointed = microbatches.size() - checkpointed;
      if (!autograd.grad_mode()) checkpointed = 0;
    }

    PipelineRules rules() const { return owner.state_->rules; }
    bool runs_again(std::size_t i, std::size_t j) const {
      return i < checkpointed && (owner.options_.checkpoints(j) || !rules().chooses_stages());
    }
    Place<D> place(std::size_t i, std::size_t j) { return places.of(owner.stages_[j].device, i); }

    void fence(std::size_t i, std::size_t j) {
      Microbatch& microbatch = microbatches[i];
      if (j == 0) return;
      if (i > 0 && rules().orders_microbatches()) order(i, j);
      for (const std::size_t route : owner.layout_->into(j)) {
        const Transfer<D> transfer(place(i, owner.layout_->routes()[route].from), place(i, j));
        microbatch.portals->at(route)->copy(transfer, lane(autograd, microbatch.values));
      }
      const Transfer<D> transfer(place(i, j - 1), place(i, j));
      copy_node(autograd, transfer, microbatch.values);
      in_node(autograd, transfer, microbatch.values);
    }

    // Makes backward take micro-batch i through stage j before micro-batch i - 1, which has just
    // left this stage in forward.
    void order(std::size_t i, std::size_t j) {
      const Place<D> from = place(i - 1, j);
      const typename D::StreamScope on(from.device, from.arrivals);
      const Value phony = fork(autograd, lane(autograd, microbatches[i - 1].values));
      join(autograd, lane(autograd, microbatches[i].values), phony);
    }

    using Clock = std::vector<std::pair<std::size_t, std::size_t>>;
    void compute(const Clock& clock) {
      std::vector<std::shared_ptr<StageRun<D, A>>> runs;
      std::vector<WorkerTask> tasks;
      for (const auto& cell : clock) {
        const std::size_t i = cell.first, j = cell.second;
        const auto run = std::make_shared<StageRun<D, A>>(
            owner.state_, owner.stages_[j],
            typename StageSkips<D, A>::Of{autograd, owner.layout_, microbatches[i].portals, j,
                                          nullptr, rules()},
            place(i, j));
        runs.push_back(run);
        tasks.push_back({owner.stages_[j].device, {}, [this, run, i, j] { forward(*run, i, j); }});
      }
      owner.workers_.run(std::move(tasks));
      for (std::size_t k = 0; k < clock.size(); ++k) {
        finish(clock[k].first, clock[k].second, *runs[k]);
      }
    }

    // Runs in the worker of the device.
    void forward(StageRun<D, A>& run, std::size_t i, std::size_t j) {
      Values& values = microbatches[i].values;
      SharedBytes<D>& bytes = microbatches[i].bytes;
      const D& device = owner.devices_[owner.stages_[j].device];
      bytes.enter(device, crossing(i, owner.layout_->into(j)));
      if (runs_again(i, j)) {
        CoreCheckpointOptions options;
        options.preserve_rng_state = owner.options_.preserve_rng_state;
        run.forward_checkpointed(callers, values, options);
      } else {
        run.forward(callers, values);
      }
      bytes.leave(device, crossing(i, owner.layout_->out_of(j)), j, runs_again(i, j));
    }
    // Returns the values of a micro-batch, and what the portals of these routes hold.
    Crossings<std::optional<typename D::Tensor>> crossing(std::size_t i,
                                                          const std::vector<std::size_t>& routes) {
      Crossings<std::optional<typename D::Tensor>> found;
      for (const Value& value : microbatches[i].values) {
        found.values.push_back(tensor_of(autograd, value));
      }
      for (const std::size_t route : routes) {
        found.skips.emplace(route, microbatches[i].portals->at(route)->tensor());
      }
      return found;
    }

    // Copies what later stages need, then adds the node that recomputes the stage.
    void finish(std::size_t i, std::size_t j, StageRun<D, A>& run) {
      Values& values = microbatches[i].values;
      for (const std::size_t route : owner.layout_->out_of(j)) {
        Transfer<D>(place(i, j), place(i, owner.layout_->routes()[route].to)).send();
      }
      if (j + 1 < owner.stages_.size()) {
        out_node(autograd, Transfer<D>(place(i, j), place(i, j + 1)), values);
      }
      run.finish(values);
    }

    Pipeline& owner;
    A& autograd;
    Places<D> places;
    const CallersState<A> callers;
    std::vector<Microbatch> microbatches;
    std::size_t checkpointed = 0;
  };

  std::vector<D> devices_;
  W workers_;
  const std::vector<PipelineStage<A>> stages_;
  const std::shared_ptr<const SkipLayout> layout_;
  const CorePipelineOptions options_;
  const std::shared_ptr<CheckpointState<D, A>> state_;
};

}  // namespace ferry
