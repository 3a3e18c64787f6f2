// One micro-batch at one stage of a pipeline whose graph is cut between stages. Its inputs are
// leaves. Its outputs are the inputs of one last node, the *cut*. The backward of the cut returns
// the gradients that came back from later stages.
//
//     arrived ──▶ leaf ──▶ the stage ──▶ outputs, stashes ──▶ cut ──▶ phony
//     gradients ◀── leaf ◀─────────────────────────────────── cut ◀── backward begins here
//
// The cut keeps no tensor: the bytes of an output are freed as soon as the next stage has copied
// them, unless the graph of the stage saved them.
//
// So ScheduledPipeline (scheduled_pipeline.h) can run one stage of one micro-batch backward alone.
//
// Call forward(), or forward_checkpointed() and later recompute(); put_away() may come between
// these two. Then call backward() and gradients(). The last stage has no cut: its backward begins
// at the loss. Because the inputs are leaves, the stage must not write them in place.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/pipeline/cut_skips.h"
#include "shared/pipeline/stage.h"
#include "shared/seam/autograd.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/hooks.h"
#include "shared/seam/invariant.h"

namespace ferry {

template <PipelineAutograd A>
class CutStage {
 public:
  using Value = typename A::Value;
  using Values = std::vector<Value>;
  using Function = typename PipelineStage<A>::Function;

  CutStage(A autograd, Function function, std::shared_ptr<const SkipLayout> layout,
           Crossings<Value> arrived)
      : autograd_(std::move(autograd)),
        function_(std::move(function)),
        layout_(std::move(layout)),
        arrived_(std::move(arrived)) {}

  CutStage(const CutStage&) = delete;
  CutStage& operator=(const CutStage&) = delete;

  // Runs the stage. Its results have no graph; they require grad where they would with one.
  Crossings<Value> forward() { return run(); }

  // Runs a checkpointed stage for the first time, without a graph.
  Crossings<Value> forward_checkpointed(bool random) {
    invariant(!ambient_, "a checkpointed stage runs forward once");
    ambient_ = autograd_.ambient(arrived_.values, random);
    const typename A::GradModeScope no_grad(autograd_, false);
    const CheckpointContextGuard<A> inside(autograd_, checkpointing(false));
    return run();
  }
  // Saves the inputs under these hooks until the recompute, so they may be offloaded meanwhile.
  void put_away(std::shared_ptr<Hooks<typename A::Tensor>> hooks) {
    invariant(away_.empty(), "a stage's inputs are put away once");
    const HooksGuard<A> guard(autograd_, std::move(hooks));
    leaves_ = {};
    const auto save = [&](Value& value) {
      if (!autograd_.exists(value)) return;
      const bool requires_grad = autograd_.requires_grad(value);
      // Save a value that does not require grad. Autograd accumulates into the leaf itself, so a
      // saved leaf that requires grad would keep its bytes on the device.
      value = autograd_.leaf(autograd_.tensor(value), false);
      away_.push_back({&value, requires_grad, autograd_.save(value)});
      value = Value();
    };
    for (Value& value : arrived_.values) save(value);
    for (auto& [route, value] : arrived_.skips) save(value);
  }
  void recompute() {
    invariant(ambient_.has_value(), "a stage runs again after its checkpointed forward");
    for (PutAway& away : away_) {
      *away.value = autograd_.leaf(autograd_.tensor(away.saved.unpack()), away.requires_grad);
    }
    away_.clear();
    const CheckpointContextGuard<A> inside(autograd_, checkpointing(true));
    const typename A::AmbientScope ambient(autograd_, *ambient_);
    run();
  }

  // Runs a graph task from the cut. In the last stage it starts from the loss.
  void backward(Crossings<Value> gradients) {
    *gradients_ = std::move(gradients);
    if (!autograd_.requires_grad(root_)) return;
    // A loss has no cut after it, and an absent gradient means 1.
    Values roots = {std::move(root_)};
    Values from = {is_loss_ ? Value() : autograd_.phony(roots.front())};
    root_ = Value();
    autograd_.backward(roots, from);
  }
  // Returns the gradients of the inputs; none for an input without one. Call it after backward().
  Crossings<Value> gradients() {
    Crossings<Value> result;
    for (const Value& leaf : leaves_.values) result.values.push_back(autograd_.gradient(leaf));
    for (const auto& [route, leaf] : leaves_.skips) {
      result.skips.emplace(route, autograd_.gradient(leaf));
    }
    return result;
  }

  // Marks the last stage: it returns the loss.
  void ends_in_loss() { is_loss_ = true; }

 private:
  struct PutAway {
    Value* value;  // its place in arrived_
    bool requires_grad;
    typename A::SavedValue saved;
  };

  CheckpointContext checkpointing(bool again) const {
    CheckpointContext context = checkpoint_context(autograd_.hooks());
    context.checkpointing = !again;
    context.recomputing |= again;
    return context;
  }

  Crossings<Value> run() {
    leaves_ = {};
    for (const Value& value : arrived_.values) leaves_.values.push_back(autograd_.detach(value));
    for (const auto& [route, value] : arrived_.skips) {
      leaves_.skips.emplace(route, autograd_.detach(value));
    }
    const auto skips = std::make_shared<CutSkips<Value>>(layout_, leaves_.skips);
    Crossings<Value> made;
    {
      const SkipTrackerGuard<A> guard(autograd_, skips);
      made.values = function_(leaves_.values);
    }
    made.skips = skips->stashed();
    return cut(std::move(made));
  }

  Crossings<Value> cut(Crossings<Value> made) {
    Crossings<Value> leaving;
    Values inputs;
    std::vector<std::optional<std::size_t>> routes;  // the route of each input; none for a value
    std::vector<std::size_t> ordinals;
    const auto leave = [&](const Value& value, std::optional<std::size_t> route,
                           std::size_t ordinal) {
      if (autograd_.requires_grad(value)) {
        inputs.push_back(value);
        routes.push_back(route);
        ordinals.push_back(ordinal);
      }
      // In a checkpointed forward it is not known yet which results will require grad. So each
      // result that can have a gradient is marked as requiring one.
      const bool may = !autograd_.grad_mode() && autograd_.differentiable(value);
      return may ? autograd_.leaf(autograd_.tensor(value), true) : autograd_.detach(value);
    };
    for (std::size_t i = 0; i < made.values.size(); ++i) {
      leaving.values.push_back(leave(made.values[i], std::nullopt, i));
    }
    for (const auto& [route, value] : made.skips) {
      leaving.skips.emplace(route, leave(value, route, 0));
    }
    if (is_loss_) {
      root_ = made.values.at(0);
    } else if (!inputs.empty() && autograd_.grad_mode()) {
      root_ =
          autograd_
              .node(inputs, Values{autograd_.phony(inputs.front())},
                    [gradients = gradients_, routes, ordinals](const Values&) {
                      Values result;
                      for (std::size_t i = 0; i < routes.size(); ++i) {
                        result.push_back(std::move(routes[i] ? gradients->skips[*routes[i]]
                                                             : gradients->values.at(ordinals[i])));
                      }
                      return result;
                    })
              .front();
    }
    return leaving;
  }

  A autograd_;
  const Function function_;
  const std::shared_ptr<const SkipLayout> layout_;
  Crossings<Value> arrived_;
  std::vector<PutAway> away_;
  bool is_loss_ = false;
  std::optional<typename A::Ambient> ambient_;
  Crossings<Value> leaves_;
  Value root_;
  std::shared_ptr<Crossings<Value>> gradients_ = std::make_shared<Crossings<Value>>();
};

}  // namespace ferry
