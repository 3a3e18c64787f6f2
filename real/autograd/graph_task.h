// One call of LibTorch's backward, as the core knows it: an integer that is never reused, and what
// is to be called at its end.
//
// The engine that is linked (engine.h) makes one for each backward. Its end comes when that returns
// *or throws*: LibTorch's own final callbacks do not run after a failure. Nodes of a failed task
// may still run on other threads then; to them there is no task any more.
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

  // Throws std::logic_error where the task has ended.
  void after(std::function<void()> callback);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Calls what asked for it, in that order, and nothing more from then on.
  void end() noexcept;

  // Of the calling thread; none outside a backward, and in what is left of a failed one. Lives as
  // long as the node that asks runs.
  static GraphTask* current();

 private:
  const GraphTaskId id_;
  std::mutex mutex_;
  std::atomic<bool> ended_ = false;  // written under the lock
  std::vector<std::function<void()>> after_;
};

}  // namespace ferry::real
