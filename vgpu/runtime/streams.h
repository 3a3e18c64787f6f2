// The streams of the program, found by their handles.
//
// Each device has a legacy default stream, which always exists. The program creates others. Each
// thread has a default stream of its own on each device, which is created when a call first names
// it (cudaStreamPerThread). A destroyed stream is kept, out of the program's reach, because
// snapshots and free pieces of memory may still name it.
//
// Streams are numbered in the order of their creation, after the legacy ones, whose numbers are
// those of their devices. schedule.h decides when their work runs; queues.h gives them work.
//
// The runtime's lock guards the streams and their queues (runtime.h); any thread of the program may
// call. A handle that is no stream's ends the process, because CUDA defines no error for it. Not
// modelled: priorities, which order nothing here.
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

// One of four: a body to run, a record to complete, a record to wait for, or a sleep.
struct Work {
  std::function<void()> body = nullptr;
  Cost cost = {};
  const char* name = "";  // must live as long as the process
  SnapshotRef fulfil = nullptr;
  SnapshotRef wait_for = nullptr;
  std::int64_t sleep_us = 0;
  std::int64_t wakes_at = -1;  // the count of runtime calls that wakes it; -1 before it sleeps
};

struct Stream {
  StreamId id{};
  int device = 0;
  bool blocking = true;
  int priority = 0;
  Tempo tempo = Tempo::kEager;
  std::uint64_t tempo_of = 0;  // the number of the set_tempo that it follows
  std::deque<Work> queue;
};

class Streams {
 public:
  Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  Stream* create(int device, bool blocking, int priority);
  void destroy(Stream& stream);  // it was created, and nothing is queued

  // Returns the stream that a call names. A default stream is the one of this device. The calling
  // thread's own default stream is created now if it does not exist.
  Stream& use(cudaStream_t handle, int device);
  Stream& use(cudaStream_t handle);  // on the calling thread's device

  Stream& legacy(int device) { return legacy_[static_cast<std::size_t>(device)]; }
  bool is_legacy(const Stream& stream) const;
  bool is_gone(const Stream& stream) const;
  // Finds destroyed streams as well. Returns null if there never was such a stream.
  Stream* find(StreamId id);
  // The number of operations that are queued on streams that are not destroyed.
  std::int64_t queued() const;

  // These visit the streams of all devices or of one: first the legacy ones, then the others in the
  // order of their creation. Destroyed streams are left out.
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
  // Returns the stream of a handle. It creates nothing: if the handle is cudaStreamPerThread, the
  // calling thread's own default stream must exist.
  Stream& named(cudaStream_t handle, int device);

  std::array<Stream, kDevices> legacy_;
  std::vector<std::unique_ptr<Stream>> created_;
  std::vector<std::unique_ptr<Stream>> gone_;
  std::uint32_t next_id_ = kDevices;
};

}  // namespace ferry::vgpu
