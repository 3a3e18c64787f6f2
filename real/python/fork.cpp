#include "real/python/fork.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace ferry::real::python {
namespace {

std::atomic<std::uint64_t> generation{0};

// Never destroyed, because a fork may happen at any time.
struct Forked {
  std::mutex mutex;
  std::vector<std::weak_ptr<void>> states;
  std::vector<std::shared_ptr<void>> kept;
};
Forked& forked() {
  static auto* const forked = new Forked;
  return *forked;
}

void before_fork() { forked().mutex.lock(); }
void in_parent() { forked().mutex.unlock(); }
void in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  for (const auto& state : forked().states) {
    if (auto alive = state.lock()) forked().kept.push_back(std::move(alive));
  }
  forked().states.clear();
  forked().mutex.unlock();
}

}  // namespace

std::uint64_t process_generation() noexcept { return generation.load(std::memory_order_relaxed); }

void keep_over_fork(const std::shared_ptr<void>& state) {
  static const int watched = pthread_atfork(&before_fork, &in_parent, &in_child);
  static_cast<void>(watched);
  const std::lock_guard lock(forked().mutex);
  std::erase_if(forked().states, [](const auto& other) { return other.expired(); });
  forked().states.push_back(state);
}

}  // namespace ferry::real::python
