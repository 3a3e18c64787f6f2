#include "sim/run/training/training_loop.h"

#include <exception>
#include <string>

#include "formats/error.h"
#include "sim/run/training/run_parts.h"

namespace ferry::sim {

TrainingLoop::TrainingLoop(const Training& training, const Program& program, Machine& machine,
                           const KernelTimes& times, Tape& tape)
    : training_(training),
      machine_(machine),
      tape_(tape),
      optimizer_(training, program, machine, times, tape) {
  if (training.steps == 0) prepared_ = optimizer_state(program, training.optimizer, machine, tape);
}

void TrainingLoop::run(const std::function<void()>& forward_backward,
                       const std::function<void()>& before_last) {
  if (training_.steps == 0) return forward_backward();
  for (std::size_t step = 1; step <= training_.steps && !failed(); ++step) {
    began_ns_ = machine_.drain();
    if (step == training_.steps) {
      begin_last();
      before_last();
    }
    const Time before_ns = optimizer_.busy_ns();
    forward_backward();
    if (failed()) break;
    run_optimizer();
    optimizer_ns_ = optimizer_.busy_ns() - before_ns;
    // The gradients of the last step stay, because they are read.
    if (step < training_.steps && !failed()) optimizer_.zero_grad();
  }
  optimizer_.end();
}

void TrainingLoop::begin_last() {
  machine_.reset_peaks();
  stats_before_ = machine_.device_stats();
  blocked_before_ns_ = machine_.compute_blocked_on_copies_ns();
  retries_before_ = machine_.pool().stats().num_alloc_retries;
}

void TrainingLoop::run_optimizer() {
  try {
    machine_.set_place(0);
    optimizer_.run();
  } catch (const LimitReached& error) {
    errors_.push_back({0, error.what(), true});
  } catch (const std::exception& error) {
    errors_.push_back({0, std::string("the optimizer's step: ") + error.what()});
  }
}

}  // namespace ferry::sim
