#include "real/autograd/graph_task.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

GraphTaskId next_id() {
  static std::atomic<std::int64_t> next{0};
  return GraphTaskId{next.fetch_add(1, std::memory_order_relaxed)};
}

}  // namespace

GraphTask::GraphTask() : id_(next_id()) {}

void GraphTask::after(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (ended_) throw torch_error(Error("the graph task has ended: it failed on another thread"));
  after_.push_back(std::move(callback));
}

void GraphTask::end() noexcept {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    callbacks.swap(after_);
  }
  for (const auto& callback : callbacks) callback();
}

}  // namespace ferry::real
