// Workers whose tasks begin with the autograd state of a new thread: grad mode, no hooks, no
// autocast. In the simulation all threads share one state, but real threads do not. So a pipeline
// must pass on the caller's state, and a task must not leave its own state to others.
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
