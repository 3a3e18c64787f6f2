// Reports the program's operations to a listener (control.h), in the order of the calls.
//
// An operation belongs to the core's step in which the calling thread is, unless it names another
// step. When a block has been returned to one of LibTorch's allocators, the allocator may record
// events for it before it frees it. pending_free.h holds the free back until the thread does
// something else, so that the free is reported before later operations.
//
// LibTorch's allocator of page-locked memory does not report its blocks under its own lock. So
// another thread may get a block that was returned and not yet reported free. The free is then
// reported before the block's next use, and the late report is dropped.
//
// The runtime's lock guards the class (runtime.h), and the listener is called under that lock: it
// must not call the runtime. LibTorch's device allocator calls with its own lock held, which is
// taken first. The class does not own the listener. Without a listener nothing is reported, but
// pending frees are still tracked.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <thread>

#include "vgpu/runtime/control.h"
#include "vgpu/runtime/pending_free.h"

namespace ferry::vgpu {

inline constexpr const char* kPinnedName = "pinned memory";  // their name in the log

class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void set_listener(Listener* listener) { listener_ = listener; }

  void tell(const StreamOp& op);
  // Reports that the host waited for the stream, or learned that it is done.
  void tell_sync(StreamId stream);
  // Reports that the bytes went back to the system.
  void forget(Range range);
  void destroy_event(EventId event);

  // The calling thread returned the block to the allocator in this library.
  void begin_free(const StreamOp& free, std::string_view library);
  // The allocator has freed the block. Reports that, unless it was reported before.
  void tell_free(const StreamOp& free);

  // The same for page-locked blocks, which another thread may get before their free is reported.
  void begin_pinned_free(const StreamOp& free);
  bool began_pinned_free(std::uint64_t address) const;  // the calling thread did
  void end_pinned_free(std::uint64_t address);          // whichever thread began it, if any did

  // Events recorded from this return address are the program's, never an allocator's.
  void learn_recorder(const void* caller) { pending_free_.learn(caller); }
  // Returns whether the calling thread, recording an event from this return address, does so for a
  // block.
  bool records_for_block(const void* caller) const { return pending_free_.is_for_block(caller); }
  // Notes that the returned block is in use on this stream.
  void add_use(StreamId stream) { pending_free_.add_use(stream); }

 private:
  struct ReturnedPinned {
    std::thread::id by{};
    StreamOp free;
  };

  void end_free();
  void hear(StreamOp op);

  Listener* listener_ = nullptr;
  PendingFree pending_free_;
  std::map<std::uint64_t, ReturnedPinned> returned_pinned_;  // by address; not reported as free
};

}  // namespace ferry::vgpu
