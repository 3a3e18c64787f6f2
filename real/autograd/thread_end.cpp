#include "real/autograd/thread_end.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <mutex>
#include <utility>
#include <vector>

#include "real/autograd/slots.h"

namespace ferry::real {
namespace {

// Read when all others are gone: it has no destructor.
thread_local bool ended = false;

// A thread's variables die in the reverse order of their making, so this one before LibTorch's.
class End {
 public:
  End() { c10::ThreadLocalDebugInfo::get(kHooksSlot); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  // LibTorch's allocator asks the thread for its slots even after they died with it.
  ~End() {
    c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(nullptr);
    ended = true;
  }
  void watch() {}
};

}  // namespace

void watch_thread_end() {
  thread_local End end;
  end.watch();
}

bool thread_has_ended() { return ended; }

void keep_for_ever(std::shared_ptr<void> state) {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(state));
}

}  // namespace ferry::real
