#include "real/autograd/shared_draws.h"

#include <atomic>
#include <mutex>

namespace ferry::real {
namespace {

std::mutex mutex;
std::uint64_t last = 0;  // the number of the thread that called last; 0: none has
std::uint64_t turns = 0;

// Returns the calling thread's number. A later thread never gets it, as it may get an address.
std::uint64_t this_thread() noexcept {
  static std::atomic<std::uint64_t> threads = 0;
  thread_local const std::uint64_t number = ++threads;
  return number;
}

}  // namespace

std::uint64_t mark_shared_draws() noexcept {
  const std::lock_guard lock(mutex);
  if (last != this_thread()) {
    last = this_thread();
    ++turns;
  }
  return turns;
}

bool draws_are_shared() noexcept {
  const std::lock_guard lock(mutex);
  return turns > 1 || (last != 0 && last != this_thread());
}

}  // namespace ferry::real
