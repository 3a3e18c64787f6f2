// The inside of the virtual GPU: devices, queues, and when their work runs.
//
// One lock guards it all. Work runs on whatever thread calls: there are no threads of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "vgpu/runtime/clock.h"
#include "vgpu/runtime/control.h"
#include "vgpu/runtime/device_addresses.h"
#include "vgpu/runtime/known_bytes.h"
#include "vgpu/runtime/memory_pool.h"
#include "vgpu/runtime/pending_free.h"
#include "vgpu/runtime/virtual_memory.h"

namespace ferry::vgpu {

struct Stream;

// What a record holds.
struct Snapshot {
  explicit Snapshot(Stream& of);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  Stream* stream;
  bool done = false;
  std::int64_t done_ns = 0;  // without a clock: operations, as microseconds
  Clock* clock;              // or none
  Clock::Mark mark{};
};
using SnapshotRef = std::shared_ptr<Snapshot>;

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

struct Event {
  EventId id{};
  int device = 0;
  bool timed = true;
  SnapshotRef latest;       // none: never recorded
  bool of_a_block = false;  // LibTorch's allocator asks it for one block's sake
};

struct Memory {
  std::size_t bytes = 0;
  int device = 0;
  bool mapped = false;  // addresses that pieces are mapped to, one behind the other
};

inline constexpr int kDevices = 8;                           // at most
inline constexpr const char* kPinnedName = "pinned memory";  // in the log

// Of the calling thread.
struct Thread {
  int device = 0;
  std::array<Stream*, kDevices> default_streams = {};  // per-thread ones, once they are used
  cudaError_t last_error = cudaSuccess;
  Step step = Step::kUser;
  std::string refused = {};     // why the last call that is not there failed
  const char* place = nullptr;  // in the program (control.h)
  int in_pinned_allocator = 0;  // times
  bool learns = false;          // who records for programs
};
Thread& thread();

class Runtime {
 public:
  static Runtime& get();

  // An entry point begins: whether it fails, and perhaps some work runs. Called under the lock.
  cudaError_t enter(const char* name);
  cudaError_t fail_with(cudaError_t error);  // remembers it as the thread's last error
  // What was called is not there: fails with cudaErrorNotSupported, whose text is then `why`.
  cudaError_t refuse(const std::string& name, std::string why);

  std::mutex mutex;

  // Streams.
  Stream& stream(cudaStream_t handle) { return stream(handle, thread().device); }
  Stream& stream(cudaStream_t handle, int device);  // of which device the default stream is
  Stream* create_stream(int device, bool blocking, int priority);
  void destroy_stream(cudaStream_t handle);
  void enqueue(Stream& stream, Work work);
  void sleep(Stream& stream, std::int64_t microseconds);
  void wait(Stream& stream, const SnapshotRef& snapshot);
  // What `later` is given from now on waits for all that the other one has been given.
  void order(StreamId earlier, Stream& later);
  void finish(Stream& stream);
  void finish(SnapshotRef snapshot);  // by value: what is queued goes as it runs
  // The host waits until it is done, or asks whether it is: then it has run.
  void await(Stream& stream);
  void await(const SnapshotRef& snapshot);
  bool is_done(Stream& stream);
  bool is_done(const SnapshotRef& snapshot);
  void finish_device(int device);
  void synchronize_device(int device);  // the host waits, and knows
  SnapshotRef record(Stream& stream);

  // Events.
  Event* create_event(bool timed);
  bool known(const Event* event) const { return events_.contains(event); }
  void destroy_event(Event* event);

  // Memory. What is freed is unmapped once all queues are empty; its addresses are kept, so that
  // an address in a log means one block, and a use after the free ends the process.
  void* allocate(std::map<std::uintptr_t, Memory>& from, std::size_t bytes, int device);
  bool free(std::map<std::uintptr_t, Memory>& from, void* address);
  static const Memory* find(const std::map<std::uintptr_t, Memory>& in, const void* address,
                            std::size_t bytes);
  // Pieces of virtual memory; of one device, what they are mapped to is one Memory.
  bool map(void* address, std::size_t bytes, std::uint64_t piece);
  bool unmap(void* address, std::size_t bytes);
  // What the stream-ordered allocator has free of the device's memory goes back, down to so many
  // bytes; the device finishes first.
  void release_unused(int device, std::uint64_t kept);
  void release_unused(int device) { release_unused(device, pool(device).release_threshold); }
  // Whether it was a block of the stream-ordered allocator's; now it is the stream's to use again.
  bool free_of_pool(void* address, const Stream& stream);
  MemoryPool& pool(int device) { return pools[static_cast<std::size_t>(device)]; }
  std::int64_t device_bytes(int device) const;
  std::int64_t free_device_bytes(int device) const;
  std::int64_t pinned_bytes() const;
  void note_peaks();

  // Whether a kernel is to compute, by addresses; from now on what it writes is known, or is not.
  bool computes(std::span<const Range> reads, std::span<const Range> writes);

  // The log.
  void tell(const StreamOp& op);
  void begin_free(const StreamOp& free, std::string_view library);
  void end_free();
  bool completes_free(Range block);  // whether it was told
  Range range(const void* address, std::size_t bytes) const;

  std::uint64_t draw(std::uint64_t below);
  bool stages_pageable() const { return tempo_ != Tempo::kLazy && seed_ % 4 < 2; }
  void set_tempo(Tempo tempo, std::uint64_t seed);
  void set_tempo(Stream& stream, Tempo tempo);
  void run_everything();
  Counts counts() const;

  Listener* listener = nullptr;
  Clock* clock = nullptr;
  bool clock_answers = false;  // what the host asks; otherwise the tempo does
  KernelValues values = KernelValues::kComputed;
  KnownBytes known_bytes;  // where not all are computed
  int devices = 2;
  std::string device_name = "virtual GPU";
  int compute_capability = 80;
  int multiprocessors = 4;
  std::int64_t device_bytes_max = std::int64_t{256} << 20;
  std::int64_t context_bytes = 0;  // of them
  std::int64_t pinned_bytes_max = std::int64_t{256} << 20;
  bool keeps_addresses = false;
  bool segments_go_up = false;
  struct Failure {
    std::int64_t left = 0;
    cudaError_t error = cudaSuccess;
    Where where = Where::kAnywhere;
  };
  std::map<std::string, Failure> failures;  // to come
  cudaError_t broken = cudaSuccess;
  std::map<std::string, std::int64_t> calls;
  std::map<std::string, std::int64_t> refusals;  // by what was called
  std::map<std::uintptr_t, Memory> device_memory;
  std::map<std::uintptr_t, Memory> pinned_memory;
  VirtualMemory virtual_memory;
  std::array<MemoryPool, kDevices> pools;
  PendingFree pending_free;
  // By address: who returned a block of the pinned allocator's that is not told free yet.
  std::map<std::uint64_t, std::pair<std::thread::id, StreamOp>> returned_pinned;
  std::int64_t wrong_frees = 0;
  std::array<std::int64_t, kDevices> device_bytes_peaks{};
  std::int64_t pinned_bytes_peak = 0;

 private:
  Runtime();
  void hear(StreamOp op);
  // Whether something of it ran: in an order of its own, or because the host waits for it.
  bool run_one(Stream& stream, bool awaited);
  bool sleeps(Work& work, bool awaited);
  void run_body(const Work& work);
  void run_eager();
  void run_random();
  bool is_apart() const { return tempo_ == Tempo::kSideFirst || tempo_ == Tempo::kMainFirst; }
  // The host asked, and was told that it is not done.
  bool asked_in_vain();
  void choose_tempo(Stream& stream);
  void join_legacy(Stream& stream, bool before);
  void order(Stream& earlier, Stream& later);
  void* take_addresses(std::size_t bytes, int device);
  void unmap_freed();

  std::array<Stream, kDevices> legacy_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> gone_;  // snapshots may still name them
  std::set<const Event*> events_;
  struct Freed {
    void* address = nullptr;
    std::size_t bytes = 0;
    bool stays = false;  // its addresses stay reserved
  };
  std::vector<Freed> freed_;
  std::array<DeviceAddresses, kDevices> addresses_;
  std::uint32_t stream_ids_ = kDevices;
  std::uint32_t event_ids_ = 0;
  Tempo tempo_ = Tempo::kEager;
  std::uint64_t tempos_ = 0;  // calls of set_tempo
  std::uint64_t seed_ = 0;
  std::uint64_t draws_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t entries_ = 0;   // calls into the runtime: a microsecond of the host's each
  std::int64_t sleepers_ = 0;  // queued
  std::int64_t asked_ = 0;     // in vain
};

}  // namespace ferry::vgpu

// How an entry point begins: it takes the lock, is counted, and may be told to fail.
#define VGPU_ENTER()                                                             \
  [[maybe_unused]] auto& runtime = ::ferry::vgpu::Runtime::get();                \
  const std::lock_guard lock(runtime.mutex);                                     \
  if (const cudaError_t error = runtime.enter(__func__); error != cudaSuccess) { \
    return error;                                                                \
  }
