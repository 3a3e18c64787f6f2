// One simulated GPU and its host: streams, pools, a host clock, and the stream of operations that
// they make.
//
// Every call is issued by the host at host_now(), which each launch moves on; the engine decides
// when it runs. Whoever wants to judge the run consumes its operations (formats/stream_op.h):
// timing is the engine's, and happens-before, lifetimes and values are consumers.
//
// Stream 0 computes; two lanes copy; a program that computes on more streams adds them. All are
// non-blocking streams, as PyTorch's pool streams are.
//
// Pageable memory: its copies block the host until they are done, which CUDA allows.
// The host is never more than about a thousand launches ahead.
// Not modelled: cudaMalloc's own cost, several host threads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "formats/stream_op.h"
#include "shared/device.h"
#include "sim/device_pool.h"
#include "sim/engine.h"
#include "sim/host_pool.h"
#include "sim/tensor.h"

namespace ferry::sim {

struct MachineOptions {
  LinkRates links;
  Time launch_ns = 0;                 // host time of a launch
  std::int64_t device_bytes = 0;      // capacity; 0: unlimited
  std::int64_t host_bytes = 0;        // that may be pinned; 0: unlimited
  std::int64_t host_total_bytes = 0;  // for the warning
};

// A snapshot of a stream's work. The last handle gives its number back.
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

class StreamOpConsumer {
 public:
  virtual ~StreamOpConsumer() = default;
  virtual void operator()(const StreamOp& op) = 0;
};

class Machine {
 public:
  explicit Machine(const MachineOptions& options);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void add_consumer(StreamOpConsumer* consumer) { consumers_.push_back(consumer); }

  // Streams.
  StreamId compute_stream(std::uint32_t number);  // 0 exists; others are made when first asked for
  StreamId current_stream() const { return current_; }
  void set_current_stream(StreamId stream) { current_ = stream; }
  StreamId lane(Lane lane) const { return lanes_[static_cast<std::size_t>(lane)]; }
  EventHandle record(Step step, StreamId stream);
  void wait(Step step, StreamId stream, const EventHandle& event);

  // Work.
  void kernel(std::string_view name, std::uint64_t tag, std::span<const Range> reads,
              std::span<const Range> writes, Time duration);
  // Within the device, on the current stream; as long as a kernel of `duration`.
  void copy_on_device(std::string_view name, Range from, Range to, Time duration);
  void copy(Step step, CopyKind kind, Range from, Range to, StreamId stream, bool blocks_host);

  // Memory.
  Storage allocate(std::int64_t bytes, StreamId stream, Step step = Step::kUser);
  void record_use(Step step, const Storage& storage, StreamId stream);
  HostBlock allocate_host(Step step, std::int64_t bytes);
  // Its bytes are not given out again before the events are done.
  void release_host(Step step, const HostBlock& block, std::span<const EventHandle> events);
  Version new_version() { return std::make_shared<VersionCounter>(VersionCounter{++versions_, 0}); }

  // The end: everything given is done. Returns the time.
  Time drain();

  Time host_now() const { return host_now_; }
  const Engine& engine() const { return engine_; }
  DeviceStats device_stats() const { return engine_.stats(device_); }
  Time compute_blocked_on_copies_ns() const;
  const DevicePool& pool() const { return pool_; }
  const HostPool& host_pool() const { return host_pool_; }
  std::int64_t live_storages() const { return live_storages_; }
  // Those that host buffers wait for in their pool are the pool's, and not counted.
  std::int64_t live_events() const { return live_events_ - tokens_.held_events(); }
  std::int64_t operations() const { return operations_; }
  const MachineOptions& options() const { return options_; }

 private:
  friend struct StorageImpl;
  friend struct EventImpl;

  // The pools' view of time. A token is a place in a table: what it holds may be an event, too.
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
      EventHandle event;  // none: the signal is the table's own
      Signal signal{};
    };
    PoolToken add(Entry entry);
    Machine& machine_;
    std::vector<Entry> entries_;
    std::vector<std::uint64_t> unused_;
    std::int64_t held_events_ = 0;
  };

  void free(StorageImpl& storage) noexcept;
  void forget(EventImpl& event) noexcept;
  void issue(const StreamOp& op);
  void launched();

  MachineOptions options_;
  Engine engine_;
  DeviceId device_;
  std::vector<StreamOpConsumer*> consumers_;
  std::vector<StreamId> compute_;
  StreamId lanes_[2];
  StreamId current_;
  Time host_now_ = 0;
  std::vector<EventId> free_events_;
  std::uint32_t events_ = 0;
  std::uint64_t storages_ = 0;
  std::uint64_t versions_ = 0;
  std::int64_t live_storages_ = 0;
  std::int64_t live_events_ = 0;
  std::int64_t operations_ = 0;
  std::int64_t launches_ = 0;
  std::deque<Signal> marks_;
  Tokens tokens_;
  DevicePool pool_;  // the pools last: when they end, they drop tokens
  HostPool host_pool_;
};

}  // namespace ferry::sim
