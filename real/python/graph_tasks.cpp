#include "real/python/graph_tasks.h"

#include <c10/util/thread_name.h>
#include <torch/csrc/autograd/engine.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "real/autograd/graph_task.h"

namespace ferry::real {
namespace {

namespace autograd = torch::autograd;

// LibTorch's number for the calling thread's backward; negative if there is none.
using Number = int;
Number current_number() { return autograd::get_current_graph_task_id(); }

// True for the engine's threads for devices, which have their own queue only.
bool is_of_the_engine() { return c10::getThreadName().starts_with("pt_autograd_"); }

// The running tasks in which any code of Ferry has run.
class Running {
 public:
  std::shared_ptr<GraphTask> meet(Number number) {
    const auto task = std::make_shared<GraphTask>();
    {
      const std::lock_guard lock(mutex_);
      const auto [met, added] = tasks_.try_emplace(number, task);
      if (!added) return met->second;
    }
    auto end = std::make_shared<End>(*this, number, task);
    autograd::Engine::get_default_engine().queue_callback(
        [end = std::move(end)] { end->succeeded = true; });
    return task;
  }

 private:
  // Owned by the callback, so it dies with the task.
  struct End {
    End(Running& among, Number of, std::shared_ptr<GraphTask> what)
        : running(among), number(of), task(std::move(what)) {}
    End(const End&) = delete;
    End& operator=(const End&) = delete;
    ~End() {
      running.forget(number);
      task->end();
      if (!succeeded && current_number() < 0 && !is_of_the_engine()) python::drop_what_is_ready();
    }
    Running& running;
    const Number number;
    const std::shared_ptr<GraphTask> task;
    bool succeeded = false;
  };
  void forget(Number number) {
    const std::lock_guard lock(mutex_);
    tasks_.erase(number);
  }

  std::mutex mutex_;
  std::unordered_map<Number, std::shared_ptr<GraphTask>> tasks_;
};

}  // namespace

GraphTask* GraphTask::current() {
  const Number number = current_number();
  if (number < 0) return nullptr;
  static auto* const running = new Running;  // never destroyed, like the engine's threads
  struct Met {
    Number number = -1;
    std::shared_ptr<GraphTask> task;
  };
  thread_local Met met;
  if (met.number != number) met = {number, running->meet(number)};
  return met.task->ended() ? nullptr : met.task.get();
}

}  // namespace ferry::real
