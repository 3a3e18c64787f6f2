// The steps of a simulated training, and what each one took.
//
// A step is the program's main code, then the optimizer's step (optimizer_step.h). The host waits
// for the device between steps, like a training that prints its loss, so a step's time is its own.
// What a step leaves for the next one stays: cached segments, the optimizer's state, the workspaces
// of libraries. The gradients are dropped after each step but the last, because the last ones are
// read. A step with errors is the last one.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"
#include "sim/run/training/optimizer_step.h"
#include "sim/run/training/training.h"

namespace ferry::sim {

class TrainingLoop {
 public:
  // All must outlive it.
  TrainingLoop(const Training& training, const Program& program, Machine& machine,
               const KernelTimes& times, Tape& tape);

  // `forward_backward` runs the main code and drops its frames; `before_last` is called before the
  // last step. A training of 0 steps is one call of `forward_backward`.
  void run(const std::function<void()>& forward_backward, const std::function<void()>& before_last);

  // These return when the last step began, and what the device's streams had done by then.
  Time began_ns() const { return began_ns_; }
  const DeviceStats& stats_before() const { return stats_before_; }
  Time blocked_before_ns() const { return blocked_before_ns_; }
  std::int64_t retries_before() const { return retries_before_; }
  // The time of the optimizer's kernels in the last step.
  Time optimizer_ns() const { return optimizer_ns_; }
  std::size_t kept_storages() const { return optimizer_.kept_storages() + prepared_.size(); }
  // Errors of the optimizer's steps. No line of the program caused them.
  const std::vector<ProgramError>& errors() const { return errors_; }

 private:
  bool failed() const { return !tape_.errors().empty() || !errors_.empty(); }
  void begin_last();
  void run_optimizer();

  const Training training_;
  Machine& machine_;
  Tape& tape_;
  OptimizerStep optimizer_;
  std::vector<Storage> prepared_;  // the optimizer's state, if no step makes it
  Time began_ns_ = 0;
  DeviceStats stats_before_{};
  Time blocked_before_ns_ = 0;
  std::int64_t retries_before_ = 0;
  Time optimizer_ns_ = 0;
  std::vector<ProgramError> errors_;
};

}  // namespace ferry::sim
