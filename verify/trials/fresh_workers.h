// Workers whose tasks begin with autograd's state as a thread has it that nobody set up: grad mode,
// no hooks, no autocast. The simulation's threads have one state in common, and real ones have not:
// what the caller set must be taken along, and what a task leaves behind is its thread's.
#pragma once

#include <utility>
#include <vector>

#include "shared/pipeline/workers.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/workers.h"
#include "sim/program/autograd.h"

namespace ferry::verify {

class FreshWorkers {
 public:
  FreshWorkers(sim::Machine& machine, sim::SimAutograd autograd)
      : workers_(machine), autograd_(autograd) {}

  void run(std::vector<WorkerTask> tasks) {
    for (WorkerTask& task : tasks) {
      task.run = [autograd = autograd_, run = std::move(task.run)] {
        const sim::SimAutograd::HooksScope hooks(autograd, {});
        const sim::SimAutograd::GradModeScope grad(autograd, true);
        const sim::SimAutograd::AmbientScope ambient(autograd, {});
        run();
      };
    }
    workers_.run(tasks);
  }

 private:
  sim::SimWorkers workers_;
  sim::SimAutograd autograd_;
};

static_assert(Workers<FreshWorkers>);

}  // namespace ferry::verify
