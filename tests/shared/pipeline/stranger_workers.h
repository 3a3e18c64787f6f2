// Workers whose thread has a state of its own, as every other thread than the caller's has: no
// hooks, grad mode on, and another ambient state. And what a thread's state is, to compare it.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/pipeline/workers.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry::test {

struct ThreadState {
  const void* hooks = nullptr;  // the innermost frame
  bool grad_mode = true;
  std::uint32_t ambient = 0;
  bool operator==(const ThreadState&) const = default;
};

inline ThreadState state_of(const sim::SimAutograd& autograd) {
  return {autograd.hooks().top.get(), autograd.grad_mode(),
          autograd.ambient({}, /*random=*/false).state.ambient};
}

class StrangerWorkers {
 public:
  static constexpr std::uint32_t kAmbient = 99;

  explicit StrangerWorkers(sim::SimAutograd autograd) : autograd_(autograd) {}
  void run(const std::vector<WorkerTask>& tasks) {
    const sim::SimAutograd::HooksScope hooks(autograd_, {});
    const sim::SimAutograd::GradModeScope grad(autograd_, true);
    const sim::SimAutograd::AmbientScope ambient(autograd_, {{0, kAmbient}, false});
    for (const WorkerTask& task : tasks) task.run();
  }

 private:
  sim::SimAutograd autograd_;
};

static_assert(Workers<StrangerWorkers>);

}  // namespace ferry::test
