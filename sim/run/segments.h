// The core's checkpointers, for the tape: one for each device. A segment runs on the device whose
// stream is current.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"

namespace ferry::sim {

template <class D>
class Segments final : public SegmentRunner {
 public:
  Segments(const Machine& machine, const std::vector<D>& devices, SimAutograd autograd, Rules rules)
      : machine_(machine) {
    for (const D& device : devices) checkpointers_.emplace_back(device, autograd, rules);
  }
  void run(std::vector<Value> inputs, CoreCheckpointOptions options, Function function,
           Function forward) override {
    here().run(std::move(inputs), std::move(options), std::move(function), std::move(forward));
  }
  std::vector<Value> run_reentrant(
      const std::vector<Value>& inputs, const CoreCheckpointOptions& options,
      std::function<std::vector<Value>(std::vector<Value>)> function) override {
    return here().run_reentrant(inputs, options, std::move(function));
  }
  CheckpointStatistics statistics(std::uint32_t device = 0) const {
    return checkpointers_[device].statistics();
  }
  bool empty() const {
    return std::all_of(checkpointers_.begin(), checkpointers_.end(),
                       [](const auto& each) { return each.empty(); });
  }

 private:
  Checkpointer<D, SimAutograd>& here() {
    return checkpointers_[machine_.device_of(machine_.current_stream())];
  }
  const Machine& machine_;
  std::vector<Checkpointer<D, SimAutograd>> checkpointers_;
};

}  // namespace ferry::sim
