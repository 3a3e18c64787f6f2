// The parts of the virtual GPU, and the one lock that guards them all.
//
//   settings.h         the properties of the devices
//   asking.h           notes processes that ask for a device and have none
//   faults.h           which calls fail
//   log.h              reports operations to a listener
//   card_time.h        the clock, if there is one
//   known_values.h     which kernels compute
//   streams.h          the streams; events.h has the events, graphs.h the captures
//   schedule.h         when queued work runs
//   queues.h           gives work to streams
//   host.h             the host's waits and queries
//   device_memory.h    the devices' memory, with virtual_memory.h, and pools.h for cudaMallocAsync
//   pinned_memory.h    the host's page-locked memory; freed_memory.h has freed memory of both kinds
//
// A part uses only the parts that it is constructed with, so each can be read and tested alone. An
// entry point (in a file whose name ends in `_entries.cpp`) checks its arguments, calls the parts
// and reports to the log.
//
// Every part is used under the lock, on whichever thread of the program calls. The runtime has no
// threads of its own. The lock is the only one here, and it is not recursive. A caller may hold
// locks of its own (LibTorch's allocator does) and takes this one after them. Kernels' bodies, the
// listener and the clock are called under the lock. They must take no lock that a caller of the
// runtime may hold, and must not call the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <string>
#include <utility>

#include "vgpu/runtime/card_time.h"
#include "vgpu/runtime/device_memory.h"
#include "vgpu/runtime/events.h"
#include "vgpu/runtime/faults.h"
#include "vgpu/runtime/freed_memory.h"
#include "vgpu/runtime/graphs.h"
#include "vgpu/runtime/host.h"
#include "vgpu/runtime/known_values.h"
#include "vgpu/runtime/log.h"
#include "vgpu/runtime/pinned_memory.h"
#include "vgpu/runtime/pools.h"
#include "vgpu/runtime/queues.h"
#include "vgpu/runtime/schedule.h"
#include "vgpu/runtime/settings.h"
#include "vgpu/runtime/streams.h"
#include "vgpu/runtime/thread.h"
#include "vgpu/runtime/virtual_memory.h"

namespace ferry::vgpu {

class Runtime {
 public:
  // The process has one Runtime. It is never destroyed, because LibTorch frees memory until the
  // end.
  static Runtime& get();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Everything below is called under this lock.
  std::mutex& mutex() { return mutex_; }

  // Begins an entry point. Returns the error with which the call must fail; otherwise lets some
  // queued work run and returns cudaSuccess.
  cudaError_t enter(const char* name);
  // Rejects an unsupported call: it fails with cudaErrorNotSupported, and the error text is `why`.
  cudaError_t refuse(const std::string& name, std::string why);
  void note_refusal(const std::string& name);
  // Gives a stream work, and the log its operation. If the stream captures, the two become a node
  // of its graph, and do not run. If the thread rehearses (control.h), only the time counts.
  void issue(Stream& stream, StreamOp op, Work work);
  // For a call that no capture allows. Returns its error if the stream captures.
  cudaError_t refuse_in_capture(const Stream& stream);
  // Drains all queues and unmaps freed memory.
  void run_everything();

  const Settings& settings() const { return settings_; }
  void set(Settings settings) { settings_ = std::move(settings); }
  bool has_device(int device) const { return device >= 0 && device < settings_.devices; }

  Faults& faults() { return faults_; }
  Log& log() { return log_; }
  CardTime& time() { return time_; }
  KnownValues& values() { return values_; }
  Streams& streams() { return streams_; }
  Events& events() { return events_; }
  Graphs& graphs() { return graphs_; }
  Schedule& schedule() { return schedule_; }
  Queues& queues() { return queues_; }
  Host& host() { return host_; }
  FreedMemory& freed() { return freed_; }
  VirtualMemory& virtual_memory() { return virtual_memory_; }
  DeviceMemory& device_memory() { return device_memory_; }
  PinnedMemory& pinned_memory() { return pinned_memory_; }
  Pools& pools() { return pools_; }

 private:
  Runtime();

  std::mutex mutex_;
  Settings settings_;
  Faults faults_;
  Log log_;
  CardTime time_;
  KnownValues values_;
  Streams streams_;
  Events events_;
  Graphs graphs_;
  Schedule schedule_{streams_, faults_};
  Queues queues_{streams_, schedule_, events_, log_, time_};
  Host host_{streams_, schedule_, log_, time_};
  FreedMemory freed_{streams_};
  VirtualMemory virtual_memory_;
  DeviceMemory device_memory_{settings_, virtual_memory_, freed_, values_, log_};
  PinnedMemory pinned_memory_{settings_, freed_, values_};
  Pools pools_{device_memory_, schedule_, queues_, log_, time_};
};

}  // namespace ferry::vgpu

// Begins an entry point: takes the lock, counts the call, and returns if the call must fail.
#define VGPU_ENTER()                                                             \
  [[maybe_unused]] auto& runtime = ::ferry::vgpu::Runtime::get();                \
  const std::lock_guard lock(runtime.mutex());                                   \
  if (const cudaError_t error = runtime.enter(__func__); error != cudaSuccess) { \
    return error;                                                                \
  }
