// The state that all spans of a replayer share. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "shared/replay/recording.h"
#include "shared/replay/replay_rules.h"
#include "shared/seam/autograd.h"
#include "shared/seam/invariant.h"

namespace ferry {

struct ReplayStatistics {
  std::int64_t spans = 0;
  std::int64_t alive = 0;       // spans that a graph still refers to
  std::int64_t calls = 0;       // recorded calls
  std::int64_t calls_left = 0;  // recorded calls that were still needed when their span ended
  std::int64_t saved = 0;       // saved tensors that replays make again
  std::int64_t passed_on = 0;   // saved tensors from outside: given to the hooks around, or kept
  std::int64_t held = 0;        // arguments from outside that replays may need
  std::int64_t replays = 0;
  std::int64_t calls_replayed = 0;
};

template <ReplayDevice D, RecomputingAutograd A>
class ReplayState {
 public:
  ReplayState(D device_handle, A autograd_handle, Rules core_rules)
      : device(std::move(device_handle)), autograd(std::move(autograd_handle)), rules(core_rules) {}

  D device;
  A autograd;
  const ReplayRules rules;

  // Counts a span as alive while this object exists.
  struct Life {
    explicit Life(ReplayState& owner) : state(owner) {
      state.count(&ReplayStatistics::alive);
      state.count(&ReplayStatistics::spans);
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;
    ~Life() { state.count(&ReplayStatistics::alive, -1); }
    ReplayState& state;
  };

  void count(std::int64_t ReplayStatistics::*what, std::int64_t by = 1) {
    const std::lock_guard lock(mutex_);
    statistics_.*what += by;
    invariant(statistics_.*what >= 0, "no more spans end than began");
  }
  ReplayStatistics statistics() {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  typename D::Mutex mutex_;
  ReplayStatistics statistics_;
};

}  // namespace ferry
