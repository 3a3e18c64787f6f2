// Checkpoints of functions that are the tests' own, on one simulated device, in both variants. Its
// autograd has a log of ops for them to write, and tells what was asked of it.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "sim/gpu/device.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry::test {

using Values = std::vector<sim::Value>;

struct Told {
  bool captured = true;                     // false: the ambient state was not
  std::vector<std::string>* ops = nullptr;  // where the innermost log lists what runs
  int logs = 0;
  int lists = 0;  // how often one was asked for
};

struct ToldAutograd : sim::SimAutograd {
  ToldAutograd(sim::SimAutograd autograd, Told& now) : SimAutograd(autograd), told(&now) {}

  void check(const Ambient&) const {
    if (!told->captured) throw std::runtime_error("the device was initialized late");
  }

  class OpLog {
   public:
    explicit OpLog(const ToldAutograd& autograd)
        : told_(*autograd.told), outer_(std::exchange(told_.ops, &names_)) {
      ++told_.logs;
    }
    OpLog(const OpLog&) = delete;
    OpLog& operator=(const OpLog&) = delete;
    ~OpLog() { told_.ops = outer_; }
    std::vector<std::string> names() const {
      ++told_.lists;
      return names_;
    }

   private:
    Told& told_;
    std::vector<std::string>* outer_;
    std::vector<std::string> names_;
  };

  Told* told;
};

class ToldRig {
 public:
  using Function = std::function<Values(Values)>;

  PipelineRig rig{1};
  Told told;
  ToldAutograd autograd{rig.autograd(), told};
  Checkpointer<sim::SimDevice, ToldAutograd> checkpointer{sim::SimDevice(rig.machine()), autograd};

  Values run(const Values& in, const CoreCheckpointOptions& options, const Function& function) {
    Values out;
    checkpointer.run(
        in, options, [function](Values inputs) { function(std::move(inputs)); },
        [&](Values inputs) { out = function(std::move(inputs)); });
    return out;
  }
  Values call(bool reentrant, const Values& in, const Function& function) {
    if (reentrant) return checkpointer.run_reentrant(in, {}, function);
    return run(in, {}, function);
  }

  // An op that saves what it reads, and stands in the log.
  sim::Value layer(const std::string& name, const sim::Value& in) {
    if (told.ops) told.ops->push_back(name);
    return rig.saving_op({in});
  }

  CheckpointContext here() { return checkpoint_context(autograd.hooks()); }
  CheckpointContext under(SegmentPlan plan) {
    CheckpointContext context = here();
    context.plan =
        std::make_shared<PlannedSegments>(std::make_shared<const SegmentPlan>(std::move(plan)));
    return context;
  }
  CheckpointStatistics statistics() const { return checkpointer.statistics(); }
};

using ContextGuard = CheckpointContextGuard<ToldAutograd>;

// The error that it ends with; empty: none.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace ferry::test
