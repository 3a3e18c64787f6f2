// What all checkpoints of a checkpointer share. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "shared/autograd.h"
#include "shared/checkpoint_options.h"
#include "shared/device.h"
#include "shared/rules.h"

namespace ferry {

template <ComputeDevice D, RecomputingAutograd A>
class CheckpointState {
 public:
  CheckpointState(D device_handle, A autograd_handle, Rules core_rules,
                  std::function<void(const Decision&)> log)
      : device(std::move(device_handle)),
        autograd(std::move(autograd_handle)),
        rules(core_rules),
        log_(std::move(log)) {}

  D device;
  A autograd;
  const Rules rules;

  // Of a segment.
  struct Life {
    explicit Life(CheckpointState& owner) : state(owner) {
      const std::lock_guard lock(state.mutex_);
      ++state.statistics_.alive;
      ordinal = state.statistics_.segments++;
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;
    ~Life() {
      const std::lock_guard lock(state.mutex_);
      --state.statistics_.alive;
    }
    CheckpointState& state;
    std::int64_t ordinal = 0;
  };

  void count(std::int64_t CheckpointStatistics::*what) {
    const std::lock_guard lock(mutex_);
    ++(statistics_.*what);
  }
  // Segment `ordinal` runs again, for what forward packed as `pack`.
  void recomputes(std::int64_t ordinal, std::size_t pack) {
    count(&CheckpointStatistics::recomputes);
    if (log_) log_({DecisionKind::kRecompute, static_cast<std::uint64_t>(ordinal), pack, 0});
  }
  CheckpointStatistics statistics() {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  const std::function<void(const Decision&)> log_;
  typename D::Mutex mutex_;
  CheckpointStatistics statistics_;
};

}  // namespace ferry
