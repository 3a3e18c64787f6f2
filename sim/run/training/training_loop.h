// The steps of a simulated training, and what each took.
//
// A step is the program's main code, then the optimizer's (optimizer_step.h). The host waits for
// the device between steps, as a training does that prints its loss, so a step's time is its own.
// What a step leaves for the next one stays: cached segments, the optimizer's state, the workspaces
// of libraries. A step with errors is the last one.
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
  // last step. Without steps of its own, the training is one call of the former.
  void run(const std::function<void()>& forward_backward, const std::function<void()>& before_last);

  // When the last step began, and what the device's streams had done by then.
  Time began_ns() const { return began_ns_; }
  const DeviceStats& stats_before() const { return stats_before_; }
  Time blocked_before_ns() const { return blocked_before_ns_; }
  std::int64_t retries_before() const { return retries_before_; }
  // What the optimizer's kernels took in the last step.
  Time optimizer_ns() const { return optimizer_ns_; }
  std::size_t kept_storages() const { return optimizer_.kept_storages() + prepared_.size(); }
  // Those of the optimizer's steps, which no line of the program is to blame for.
  const std::vector<ProgramError>& errors() const { return errors_; }

 private:
  bool failed() const { return !tape_.errors().empty() || !errors_.empty(); }
  void begin_last();
  void run_optimizer();

  const Training training_;
  Machine& machine_;
  Tape& tape_;
  OptimizerStep optimizer_;
  std::vector<Storage> prepared_;  // the state, where no step makes it
  Time began_ns_ = 0;
  DeviceStats stats_before_{};
  Time blocked_before_ns_ = 0;
  std::int64_t retries_before_ = 0;
  Time optimizer_ns_ = 0;
  std::vector<ProgramError> errors_;
};

}  // namespace ferry::sim
