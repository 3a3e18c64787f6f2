#include "real/autograd/thread_end.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <mutex>
#include <utility>
#include <vector>

#include "real/autograd/slots.h"

namespace ferry::real {
namespace {

// It has no destructor, so it can be read after the other variables are destroyed.
thread_local bool ended = false;

// Thread-local variables are destroyed in reverse order of construction, so this one before
// LibTorch's.
class End {
 public:
  End() { c10::ThreadLocalDebugInfo::get(kHooksSlot); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  // LibTorch's allocator reads the slots of the thread even after they were destroyed.
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
