// One call of LibTorch's backward, as the core knows it: an integer that is never reused, and what
// is to be called at its end.
//
// Ferry's engine (engine.h) makes one for each Engine::execute and puts it into the slot that the
// engine carries to its threads. Its end comes when execute returns *or throws*: LibTorch's own
// final callbacks do not run after a failure. Nodes of a failed task may still run on other threads
// then; to them there is no task any more.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "shared/seam/autograd.h"

namespace ferry::real {

class GraphTask final : public c10::DebugInfoBase {
 public:
  GraphTask();
  GraphTaskId id() const { return id_; }

  // Throws std::logic_error where the task has ended.
  void after(std::function<void()> callback);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Calls what asked for it, in that order, and nothing more from then on.
  void end() noexcept;

  // Of the calling thread; none outside a backward, and in what is left of a failed one.
  static GraphTask* current();

  // While it lives, backwards of this thread are this task's.
  class Scope {
   public:
    explicit Scope(std::shared_ptr<GraphTask> task);

   private:
    c10::DebugInfoGuard guard_;
  };

 private:
  const GraphTaskId id_;
  std::mutex mutex_;
  std::atomic<bool> ended_ = false;  // written under the lock
  std::vector<std::function<void()>> after_;
};

}  // namespace ferry::real
