// The core's checkpointers and replayers for the tape, one of each for each device. A segment or a
// span runs on the device of the current stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "shared/replay/replayer.h"
#include "shared/seam/hooks.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"

namespace ferry::sim {

template <class D>
class Segments final : public SegmentRunner {
 public:
  Segments(const Machine& machine, const std::vector<D>& devices, SimAutograd autograd, Rules rules)
      : machine_(machine), autograd_(autograd) {
    for (const D& device : devices) {
      checkpointers_.emplace_back(device, autograd, rules);
      replayers_.emplace_back(device, autograd, rules);
    }
  }
  // Sets the context_fn of each checkpoint that is not reentrant.
  void set_contexts(std::function<CheckpointContexts()> make) { contexts_ = std::move(make); }
  void run(std::vector<Value> inputs, CoreCheckpointOptions options, Function function,
           Function forward) override {
    options.context_fn = contexts_;
    here().run(std::move(inputs), std::move(options), std::move(function), std::move(forward));
  }
  std::vector<Value> run_reentrant(
      const std::vector<Value>& inputs, const CoreCheckpointOptions& options,
      std::function<std::vector<Value>(std::vector<Value>)> function) override {
    return here().run_reentrant(inputs, options, std::move(function));
  }
  void run_span(std::vector<OpListener>& listeners,
                const std::function<void()>& function) override {
    if (!autograd_.grad_mode()) return function();
    const std::size_t device = machine_.device_of(machine_.current_stream());
    const auto span = replayers_[device].begin();
    {
      const HooksGuard<SimAutograd> hooks(autograd_, span->hooks());
      const Listening listening(listeners, [&span](const RanOp& ran) { span->ran(seen(ran)); });
      function();
    }
    span->end();
  }
  CheckpointStatistics statistics(std::uint32_t device = 0) const {
    return checkpointers_[device].statistics();
  }
  ReplayStatistics replays(std::uint32_t device = 0) const {
    return replayers_[device].statistics();
  }
  bool empty() const {
    const auto each_is_empty = [](const auto& all) {
      return std::all_of(all.begin(), all.end(), [](const auto& each) { return each.empty(); });
    };
    return each_is_empty(checkpointers_) && each_is_empty(replayers_);
  }

 private:
  // While it lives, there is one more listener.
  class Listening {
   public:
    Listening(std::vector<OpListener>& listeners, OpListener listener) : listeners_(listeners) {
      listeners_.push_back(std::move(listener));
    }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;
    ~Listening() { listeners_.pop_back(); }

   private:
    std::vector<OpListener>& listeners_;
  };

  static SeenCall<D> seen(const RanOp& ran) {
    SeenCall<D> seen;
    for (const RanOp::Input& input : ran.inputs) {
      seen.arguments.push_back({input.tensor, input.written, true});
    }
    seen.outputs = ran.outputs;
    seen.run = ran.run;
    return seen;
  }

  Checkpointer<D, SimAutograd>& here() {
    return checkpointers_[machine_.device_of(machine_.current_stream())];
  }
  const Machine& machine_;
  const SimAutograd autograd_;
  std::function<CheckpointContexts()> contexts_;
  std::vector<Checkpointer<D, SimAutograd>> checkpointers_;
  std::vector<Replayer<D, SimAutograd>> replayers_;
};

}  // namespace ferry::sim
