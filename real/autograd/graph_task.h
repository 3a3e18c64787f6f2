// One call of LibTorch's backward, as the core knows it: an integer that is never reused, and the
// callbacks to run at its end.
//
// The linked engine (engine.h) makes one for each backward. The task ends when the backward returns
// *or throws*; LibTorch's own final callbacks do not run after a failure. After a failure, nodes of
// the task may still run on other threads, but for them the task no longer exists.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "shared/seam/autograd.h"

namespace ferry::real {

class GraphTask final {
 public:
  GraphTask();
  GraphTaskId id() const { return id_; }

  // Adds a callback for the end. Throws an Error if the task has ended.
  void after(std::function<void()> callback);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Runs the callbacks in order. Afterwards no more can be added.
  void end() noexcept;

  // Returns the task of the calling thread; null outside a backward and after its failure. The task
  // lives at least until the calling node ends.
  static GraphTask* current();

 private:
  const GraphTaskId id_;
  std::mutex mutex_;
  std::atomic<bool> ended_ = false;  // written under the lock
  std::vector<std::function<void()>> after_;
};

}  // namespace ferry::real
