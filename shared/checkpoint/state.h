// The state that all checkpoints of a checkpointer share. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "shared/checkpoint/checkpoint_rules.h"
#include "shared/seam/autograd.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/device.h"

namespace ferry {

template <ComputeDevice D, RecomputingAutograd A>
class CheckpointState {
 public:
  CheckpointState(D device_handle, A autograd_handle, Rules core_rules)
      : device(std::move(device_handle)), autograd(std::move(autograd_handle)), rules(core_rules) {}

  D device;
  A autograd;
  const CheckpointRules rules;

  // Counts a segment as alive while this object exists.
  struct Life {
    explicit Life(CheckpointState& owner) : state(owner) {
      const std::lock_guard lock(state.mutex_);
      ++state.statistics_.alive;
      ++state.statistics_.segments;
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;
    ~Life() {
      const std::lock_guard lock(state.mutex_);
      --state.statistics_.alive;
    }
    CheckpointState& state;
  };

  void count(std::int64_t CheckpointStatistics::*what) {
    const std::lock_guard lock(mutex_);
    ++(statistics_.*what);
  }
  CheckpointStatistics statistics() {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  typename D::Mutex mutex_;
  CheckpointStatistics statistics_;
};

}  // namespace ferry
