// What a listener is told of the program's operations (control.h), in the order of the calls.
//
// An operation is of the core's step that the calling thread is in, unless it says another. Between
// the return of a block to one of LibTorch's allocators and its free, the allocator may record
// events for the block's sake: pending_free.h holds the free back until the thread does something
// else, so that it comes before all that is told after it.
//
// LibTorch's allocator of page-locked memory says nothing of its blocks under its own lock. So
// between a block's return and the word that it is free, another thread may have been given it:
// the free is told then, before the block's next life, and the word that comes late is dropped.
//
// The runtime's lock guards it (runtime.h), and the listener is called under that lock: it must not
// call the runtime. LibTorch's device allocator calls with its own lock held, which is taken first.
// It does not own the listener, and may have none: then nothing is told, but what is pending is
// kept up to date.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <thread>

#include "vgpu/runtime/control.h"
#include "vgpu/runtime/pending_free.h"

namespace ferry::vgpu {

inline constexpr const char* kPinnedName = "pinned memory";  // in the log

class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void set_listener(Listener* listener) { listener_ = listener; }

  void tell(const StreamOp& op);
  // The host waits for the stream, or has learned that it is done.
  void tell_sync(StreamId stream);
  // The bytes went back to the system.
  void forget(Range range);
  void destroy_event(EventId event);

  // The calling thread returned the block to the allocator that is in this library.
  void begin_free(const StreamOp& free, std::string_view library);
  // The allocator has the block free, which is told, unless it was.
  void tell_free(const StreamOp& free);

  // The same of page-locked blocks, which any thread may be given before they are told free.
  void begin_pinned_free(const StreamOp& free);
  bool began_pinned_free(std::uint64_t address) const;  // the calling thread did
  void end_pinned_free(std::uint64_t address);          // whoever began it, if one did

  // Who records events for programs, and never for a block's sake: this return address.
  void learn_recorder(const void* caller) { pending_free_.learn(caller); }
  // What the calling thread records from there, it records for a block's sake.
  bool records_for_block(const void* caller) const { return pending_free_.is_for_block(caller); }
  // So it does on this stream.
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
  std::map<std::uint64_t, ReturnedPinned> returned_pinned_;  // by address; not told free yet
};

}  // namespace ferry::vgpu
