// The inside of the virtual GPU: its parts, and the one lock that guards them all.
//
//   settings.h         what the devices are
//   asking.h           who asks where there is none
//   faults.h           which calls fail
//   log.h              what a listener is told
//   card_time.h        the clock, if there is one
//   known_values.h     which kernels compute
//   streams.h          the streams that there are; events.h, the events
//   schedule.h         when the work that streams were given runs
//   queues.h           what streams are given
//   host.h             what the host waits for and asks
//   device_memory.h    the devices' memory, with virtual_memory.h, and pools.h for cudaMallocAsync
//   pinned_memory.h    the host's page-locked memory; freed_memory.h, what was freed of either
//
// A part sees those that it is made with and no others, so each can be read, and tested, alone. An
// entry point (the files that are called `…_entries.cpp`) checks its arguments, asks and changes
// the parts, and tells the log.
//
// Every part is used under the lock, on whatever thread of the program calls; there are no threads
// of its own. The lock is the only one here, and is not recursive. A caller may hold locks of its
// own (LibTorch's allocator does) and takes this one after them. Under it, kernels' bodies, the
// listener and the clock are called: they must take no lock that a caller of the runtime may hold,
// and must not call the runtime.
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
  // The process has one, which is never destroyed: LibTorch frees what it has until the end.
  static Runtime& get();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // All that follows is called under this lock.
  std::mutex& mutex() { return mutex_; }

  // An entry point begins: it fails, or the host has called and some work may have run.
  cudaError_t enter(const char* name);
  // What was called is not there: fails with cudaErrorNotSupported, whose text is then `why`.
  cudaError_t refuse(const std::string& name, std::string why);
  void note_refusal(const std::string& name);
  // Runs whatever is queued, and unmaps what was freed.
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

// How an entry point begins: it takes the lock, is counted, and may be told to fail.
#define VGPU_ENTER()                                                             \
  [[maybe_unused]] auto& runtime = ::ferry::vgpu::Runtime::get();                \
  const std::lock_guard lock(runtime.mutex());                                   \
  if (const cudaError_t error = runtime.enter(__func__); error != cudaSuccess) { \
    return error;                                                                \
  }
