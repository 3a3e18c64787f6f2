// One or several equal simulated GPUs and their host: streams, memory pools, host clocks, and the
// stream of operations that they make. Calls without a device's number mean device 0.
//
// The host issues every call at host_now(), which each launch moves on. The engine decides when the
// call runs. Checkers consume the run's operations (formats/stream_op.h): happens-before, lifetimes
// and values are such consumers.
//
// Each device computes on stream 0 and copies on two lanes. A program that computes on more
// streams, or copies from other devices, adds streams. All are non-blocking, like the streams of
// PyTorch's pool. A stream belongs to one device, so the current stream also gives the current
// device.
//
// Copies of pageable memory block the host until they are done, which CUDA allows. The host is
// never more than about a thousand launches ahead of a device.
//
// Host threads are clocks: the caller makes their calls one after another, in an order of its own,
// and names the thread. The engine does not go back in time. So a call of a thread that is behind
// the engine (after a poll, a host wait, a full queue) is issued at the engine's time. Not
// modelled: locks that host threads wait for.
//
// cudaMalloc and cudaFree: if memory is full, a pool gives segments back and gets others, and the
// host waits for the device and for the driver. The segments that a pool gets before that are the
// growth in a training's first steps, and cost no time here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "formats/alloc_conf.h"
#include "formats/limits.h"
#include "formats/stream_op.h"
#include "shared/seam/device.h"
#include "sim/check/hazard.h"
#include "sim/choices/choices.h"
#include "sim/gpu/device_pool.h"
#include "sim/gpu/engine.h"
#include "sim/gpu/launch_queue.h"
#include "sim/gpu/memory_kind.h"
#include "sim/gpu/pinned_pool.h"
#include "sim/gpu/tensor.h"
#include "sim/gpu/world_fault.h"

namespace ferry::sim {

// Selects the pool of pinned memory.
enum class HostPoolKind : std::uint8_t { kFerrys, kPyTorchs };

struct MachineOptions {
  LinkRates links;
  std::int64_t memory_bytes_per_us = 0;  // memory rate for kernels; 0: copies do not slow them
  Time launch_ns = 0;                    // host time of a launch
  std::int64_t pageable_h2d = 0;         // bytes per us of the host's own copy; 0: it takes no time
  std::int64_t pageable_d2h = 0;
  std::int64_t clone_bytes_per_us = 0;  // rate of a copy on the device itself; 0: it takes no time
  std::int64_t device_bytes = 0;        // of each device, as PyTorch reports them; 0: unlimited
  std::int64_t context_bytes = 0;       // of these, bytes that no segment gets
  AllocConf alloc_conf;                 // of each device's pool
  std::int64_t host_bytes = 0;          // host memory that may be pinned; 0: unlimited
  HostPoolKind host_pool = HostPoolKind::kFerrys;
  std::int64_t host_total_bytes = 0;  // used for the warning only
  std::uint32_t devices = 1;
  PeerRates peer{};
  PortRates port{};  // rates of each port
  WorldFault fault = WorldFault::kNoFault;
  std::uint32_t devices_per_port = 0;  // so many neighbours share a port; 0, or one device: no port
  std::int64_t work_most = limits::kWork;  // limit on a tape's work (formats/program_work.h)
  DriverTimes driver;                      // times of driver calls, once the pool has been full
};

// The work that a stream had when the event was recorded. The last handle returns the number.
struct EventImpl {
  EventImpl(Machine& owner, EventId event, Signal end, StreamId on)
      : machine(&owner), id(event), signal(end), stream(on) {}
  EventImpl(const EventImpl&) = delete;
  EventImpl& operator=(const EventImpl&) = delete;
  ~EventImpl();
  Machine* machine;
  EventId id;
  Signal signal;
  StreamId stream;
};
using EventHandle = std::shared_ptr<EventImpl>;

// No stream owns host memory. Every stream that copies it records its use.
inline constexpr StreamId kNoStream{0xffff'ffff};

// Observes what each block of device memory is for. It must not call the machine's pools.
class MemoryWatch {
 public:
  virtual ~MemoryWatch() = default;
  virtual void allocated(const StorageImpl& storage) = 0;
  virtual void freed(const StorageImpl& storage) = 0;  // its block still exists
  virtual void changed_kind(const StorageImpl& storage, MemoryKind before) = 0;
  virtual void peaks_reset() = 0;
};

class Machine {
 public:
  explicit Machine(const MachineOptions& options);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() { ending_ = true; }

  void add_consumer(StreamOpConsumer* consumer) { consumers_.push_back(consumer); }
  void trace_to(TraceSink* sink) { engine_.trace_to(sink); }        // not owned
  void watch_memory(MemoryWatch* watch) { memory_watch_ = watch; }  // not owned; null: nobody
  // Traces device 0's allocator. Not owned; null: no trace.
  void trace_memory_to(PoolTrace* trace) { devices_[0].pool.trace_to(trace); }

  // Streams. A device's compute stream 0 exists from the start. Its other compute streams, and
  // those for copies from other devices, are made on first use.
  std::uint32_t devices() const { return static_cast<std::uint32_t>(devices_.size()); }
  StreamId compute_stream(std::uint32_t device, std::uint32_t number);
  StreamId compute_stream(std::uint32_t number) { return compute_stream(0, number); }
  StreamId transfer_stream(std::uint32_t device, std::uint32_t number);
  StreamId lane(std::uint32_t device, Lane lane) const {
    return devices_[device].lanes[static_cast<std::size_t>(lane)];
  }
  StreamId lane(Lane lane) const { return this->lane(0, lane); }
  std::uint32_t device_of(StreamId stream) const {
    return stream_devices_[static_cast<std::size_t>(stream)];
  }
  StreamId current_stream() const { return current_; }
  void set_current_stream(StreamId stream) { current_ = stream; }
  EventHandle record(Step step, StreamId stream);
  void wait(Step step, StreamId stream, const EventHandle& event);
  // The host waits for all work that the stream has so far.
  void synchronize(Step step, StreamId stream);

  // The line of the program's file to which work and memory are attributed now; 0: none.
  std::uint32_t place() const { return place_; }
  void set_place(std::uint32_t line) { place_ = line; }

  // Work.
  void kernel(std::string_view name, std::uint64_t tag, std::span<const Range> reads,
              std::span<const Range> writes, KernelTime time);
  // Copies within the device, on the current stream, like a kernel.
  void copy_on_device(std::string_view name, Range from, Range to, KernelTime time);
  void copy(Step step, CopyKind kind, Range from, Range to, StreamId stream, bool blocks_host);
  // Copies from another device to the one of `stream`.
  void peer_copy(Step step, Range from, Range to, std::uint32_t from_device, StreamId stream);

  // Allocates memory on the stream's device, from the stream's pool.
  Storage allocate(std::int64_t bytes, StreamId stream, Step step = Step::kUser,
                   MemoryKind kind = MemoryKind::kTemporary);
  void set_kind(StorageImpl& storage, MemoryKind kind);
  void record_use(Step step, const Storage& storage, StreamId stream);
  HostBlock allocate_host(Step step, std::int64_t bytes);
  // The block is not reused before the events are done.
  void release_host(Step step, const HostBlock& block, std::span<const EventHandle> events);
  Version new_version() { return std::make_shared<VersionCounter>(VersionCounter{++versions_, 0}); }

  // Decides wherever several answers are legal; null: always the usual answer. Not owned.
  void set_choices(choices::Choices* choices) { choices_ = choices; }
  bool has_choices() const { return choices_ != nullptr; }
  choices::Choices* choices() const { return choices_; }
  std::uint32_t choose(choices::ChoicePoint point, std::size_t ways) {
    return choices_ ? choices_->choose(point, static_cast<std::uint32_t>(ways)) : 0;
  }
  std::uint32_t turn(choices::ChoicePoint point, std::span<const std::uint32_t> actors) {
    return choices_ ? choices_->turn(point, actors) : 0;
  }
  // The current turn touches something that other turns may touch too.
  void touch(choices::Touched what, std::uint64_t number, choices::Access access) {
    if (choices_) choices_->touch(what, number, access);
  }

  // Ends the run: finishes all work, and returns the time.
  Time drain();

  // Host threads. Thread 0 is current at first. The clock of an unused thread is at 0.
  void set_host_thread(std::uint32_t thread);
  std::uint32_t host_thread() const { return host_thread_; }
  Time host_now() const { return host_now_[host_thread_]; }
  Time host_now(std::uint32_t thread) const {
    return thread < host_now_.size() ? host_now_[thread] : 0;
  }
  // The current thread waited for another one until `time`, or began then.
  void host_not_before(Time time) { host_now_[host_thread_] = std::max(host_now(), time); }

  const Engine& engine() const { return engine_; }
  DeviceStats device_stats(std::uint32_t device = 0) const {
    return engine_.stats(devices_[device].id);
  }
  Time compute_blocked_on_copies_ns(std::uint32_t device = 0) const;
  Time compute_end_ns(std::uint32_t device = 0) const;  // end of everything computed so far
  const DevicePool& pool(std::uint32_t device = 0) const { return devices_[device].pool; }
  // Restarts the peaks of all pools at what they hold now.
  void reset_peaks();
  // The pool's allocated bytes, by kind, when they last reached their peak.
  const KindBytes& kinds_at_peak(std::uint32_t device = 0) const {
    return devices_[device].kinds_at_peak;
  }
  const PinnedPool& host_pool() const { return *host_pool_; }
  std::int64_t live_storages() const { return live_storages_; }
  // Events that host buffers wait for in their pool belong to the pool, so they are not counted.
  std::int64_t live_events() const { return live_events_ - tokens_.held_events(); }
  std::int64_t operations() const { return operations_; }
  // Broken promises: memory that was reused before its uses were done, waits that never end.
  const std::vector<check::Hazard>& hazards() const { return hazards_; }
  const MachineOptions& options() const { return options_; }

 private:
  friend struct StorageImpl;
  friend struct EventImpl;

  // The pools' view of time. A token is an index into a table; an entry may hold an event.
  class Tokens final : public PoolEvents {
   public:
    explicit Tokens(Machine& machine) : machine_(machine) {}
    PoolToken record(StreamId stream) override;
    PoolToken hold(const EventHandle& event);
    bool done(PoolToken token) override;
    void wait(PoolToken token) override;
    void drop(PoolToken token) override;
    std::int64_t held_events() const { return held_events_; }

   private:
    struct Entry {
      EventHandle event;  // null: the table owns the signal
      Signal signal{};
    };
    PoolToken add(Entry entry);
    Machine& machine_;
    std::vector<Entry> entries_;
    std::vector<std::uint64_t> unused_;
    std::int64_t held_events_ = 0;
  };

  struct PerDevice {
    PerDevice(DeviceId device, std::uint32_t number, const DevicePoolOptions& memory,
              PoolEvents& events)
        : id(device), pool(number, memory, events) {}
    DeviceId id;
    std::vector<StreamId> compute;
    std::vector<StreamId> transfers;
    StreamId lanes[2]{};
    LaunchQueue queue;
    // Counts a block of the pool, after the pool has counted it.
    void count(MemoryKind kind, std::int64_t bytes);
    KindBytes kinds;
    KindBytes kinds_at_peak;
    DevicePool pool;
  };

  void charge_driver(const PerDevice& device, const DriverCalls& calls);
  void add_device(PortId port);
  StreamId add_stream(std::uint32_t device);
  void free(StorageImpl& storage) noexcept;
  void check_unlocked(const char* what);
  void forget(EventImpl& event) noexcept;
  void issue(const StreamOp& op);
  // Adds to the work given to the machine. Throws LimitReached if a step cannot last that long.
  void take(Time duration);
  Time copy_ns(Range bytes) const;  // the time on an otherwise idle link
  void issue_copy(Step step, CopyKind kind, Range from, Range to, StreamId stream);
  bool has(WorldFault fault) const { return options_.fault == fault; }
  [[noreturn]] void refuse_host(std::int64_t bytes);
  Time issue_time() const { return std::max(host_now(), engine_.now()); }
  void launched(StreamId stream);

  MachineOptions options_;
  choices::Choices* choices_ = nullptr;
  Engine engine_;
  std::vector<StreamOpConsumer*> consumers_;
  MemoryWatch* memory_watch_ = nullptr;
  std::uint32_t place_ = 0;
  std::vector<std::uint32_t> stream_devices_;
  StreamId current_{};
  std::vector<Time> host_now_{0};  // indexed by thread
  std::uint32_t host_thread_ = 0;
  std::vector<EventId> free_events_;
  std::uint32_t events_ = 0;
  std::uint64_t storages_ = 0;
  std::uint64_t versions_ = 0;
  std::int64_t live_storages_ = 0;
  std::int64_t live_events_ = 0;
  std::int64_t operations_ = 0;
  Time taken_ns_ = 0;
  std::vector<check::Hazard> hazards_;
  bool ending_ = false;  // the pools drop what they still wait for
  Tokens tokens_;
  std::deque<PerDevice> devices_;  // the pools come last: when they end, they drop tokens
  std::unique_ptr<PinnedPool> host_pool_;
};

}  // namespace ferry::sim
