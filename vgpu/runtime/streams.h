// The streams that there are, by the handles that programs have of them.
//
// Each device has a legacy default stream, which is always there. The program makes others. Each
// thread has a default stream of its own on each device, which is made when a call first names it
// (cudaStreamPerThread). A stream that is destroyed is kept, out of the program's reach: snapshots
// and free pieces of memory may still name it.
//
// Streams are numbered in the order of their making, after the legacy ones, whose numbers are their
// devices'. When their work runs is schedule.h's, what they are given is queues.h's.
//
// The runtime's lock guards the streams and their queues (runtime.h), and any thread of the program
// calls. A handle that is no stream's ends the process, for CUDA says nothing of it. Not modelled:
// a stream's priority orders nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "vgpu/runtime/clock.h"
#include "vgpu/runtime/control.h"
#include "vgpu/runtime/settings.h"
#include "vgpu/runtime/snapshot.h"

namespace ferry::vgpu {

// One of: a body to run, a record to fulfil, a record to wait for, a while to do nothing.
struct Work {
  std::function<void()> body = nullptr;
  Cost cost = {};
  const char* name = "";  // of what lives as long as the process
  SnapshotRef fulfil = nullptr;
  SnapshotRef wait_for = nullptr;
  std::int64_t sleep_us = 0;
  std::int64_t wakes_at = -1;  // in calls into the runtime; -1: its turn has not come
};

struct Stream {
  StreamId id{};
  int device = 0;
  bool blocking = true;
  int priority = 0;
  Tempo tempo = Tempo::kEager;
  std::uint64_t tempo_of = 0;  // which set_tempo it follows
  std::deque<Work> queue;
};

class Streams {
 public:
  Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  Stream* create(int device, bool blocking, int priority);
  void destroy(Stream& stream);  // one that was created, and has nothing queued

  // A call names the stream; it is the device's, where it is a default stream. The calling thread's
  // own default stream is made now, where it is not there yet.
  Stream& use(cudaStream_t handle, int device);
  Stream& use(cudaStream_t handle);  // on the calling thread's device

  Stream& legacy(int device) { return legacy_[static_cast<std::size_t>(device)]; }
  bool is_legacy(const Stream& stream) const;
  bool is_gone(const Stream& stream) const;
  // Null: there never was one. Those that are gone are found as well.
  Stream* find(StreamId id);
  // Operations that are queued, on streams that are not gone.
  std::int64_t queued() const;

  // Of all devices, or of one: the legacy ones come first, then the others as they were made. Those
  // that are gone are left out.
  template <class Each>
  void for_each(Each&& each) {
    for (Stream& stream : legacy_) each(stream);
    for (const auto& stream : created_) each(*stream);
  }
  template <class Each>
  void for_each_of(int device, Each&& each) {
    for_each([&](Stream& stream) {
      if (stream.device == device) each(stream);
    });
  }

 private:
  // The calling thread's own default stream is there.
  Stream& named(cudaStream_t handle, int device);

  std::array<Stream, kDevices> legacy_;
  std::vector<std::unique_ptr<Stream>> created_;
  std::vector<std::unique_ptr<Stream>> gone_;
  std::uint32_t next_id_ = kDevices;
};

}  // namespace ferry::vgpu
