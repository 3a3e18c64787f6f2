// The discrete-event engine of the simulated GPU: it runs streams of kernels, copies, records and
// waits on the engines of one or several GPUs, in integer nanoseconds. It knows no memory.
//
// Each device has a compute engine (one kernel at a time), a copy engine for each direction, and
// one for copies from other devices. An operation is *ready* when its stream has reached it and the
// host has issued it (`not_before`). An engine takes ready operations by (ready time, submission).
// A copy runs at the rate that its links give it (sim/gpu/links.h), which changes while it runs.
// Bytes are counted in thousandths, so a rate times a nanosecond is a whole number, and an end is
// rounded up only once. Kernels are slowed by copies that use the memory (sim/gpu/memory_rates.h).
//
// Determinism: events are ordered by (time, class, sequence); the sequence is the submission index.
// At one time, finishes, records and the waits that they release come first. Then the engines take
// what is ready. An activity lasts at least 1 ns, so what starts at a time never changes what is
// ready at that time. So the result does not depend on how far the host had advanced when it
// submitted.
//
// Running ahead: an engine that only one stream ever used needs no arbitration. That stream runs on
// without the event heap, as far as advance() or drain() go. The times are the same, but a trace is
// then ordered only within each stream. Copies run ahead only if no other device's copies can
// change their rate: not on a root port, not between devices, and not beside such copies on PCIe.
// If copies slow kernels, neither runs ahead once a device has had both.
//
// Host time: not_before must not be before the time already advanced to (it aborts: an error of the
// programmer). Submission itself processes nothing. For one thread.
//
// Not modelled: several kernels at once, preemption and stream priorities, hardware queues that
// several streams share, host functions, the rate of host memory, copies that the source pushes,
// copies that kernels slow.
// Semantics: CUDA 13 runtime guide ("Asynchronous Concurrent Execution").
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "formats/stream_op.h"
#include "sim/gpu/engine_ops.h"
#include "sim/gpu/event_queue.h"
#include "sim/gpu/links.h"
#include "sim/gpu/memory_rates.h"
#include "sim/gpu/op_queue.h"
#include "sim/gpu/signal_table.h"

namespace ferry::sim {

// The work that one record captured. Release it when nobody will use it again: its number is then
// reused. Otherwise it takes 16 bytes until the engine dies.
enum class Signal : std::uint32_t {};

// The time of a kernel: `ns` by itself. Its bytes alone would take `memory_ns` at the memory's
// whole rate; more than `ns` counts as `ns`. 0: copies do not slow it.
struct KernelTime {
  KernelTime(Time ns_alone = 0, Time memory = 0) : ns(ns_alone), memory_ns(memory) {}
  Time ns;
  Time memory_ns;
};

// A finished operation. A wait starts when its stream reaches it, and ends when its signal is
// complete.
struct CompletedOp {
  OpIndex op;  // in submission order, from 0
  StreamId stream;
  OpKind kind;
  Time start;
  Time end;
  Time issued = 0;  // by the host; it cannot start before
};

// One operation's part of Engine::digest(): both halves of a product, as in Wang Yi's wyhash.
inline std::uint64_t op_digest(OpIndex op, Time start, Time end) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t a = op * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(start);
  const std::uint64_t b = op * 0xd1342543de82ef95 + static_cast<std::uint64_t>(end);
  const Wide product = static_cast<Wide>(a ^ 0x2d358dccaa6c78a5) * (b ^ 0x8bb84b93962eacc9);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void completed(const CompletedOp& op) = 0;  // must not call the engine
};

// Covers operations that have ended.
struct DeviceStats {
  Time compute_busy_ns = 0;
  Time slowed_ns = 0;  // the part of compute_busy_ns that copies added
  Time d2h_busy_ns = 0;
  Time h2d_busy_ns = 0;
  Time peer_busy_ns = 0;  // busy with copies from other devices
  std::int64_t d2h_bytes = 0;
  std::int64_t h2d_bytes = 0;
  std::int64_t peer_bytes = 0;
};

struct StreamStats {
  Time blocked_ns = 0;            // time with a wait for another stream at its head
  Time blocked_on_copies_ns = 0;  // the part in which that stream's last work was a copy
  Time end_ns = 0;                // end of the last finished operation
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // `memory_bytes_per_us`: the memory rate that kernels can use; 0: copies do not slow kernels.
  DeviceId add_device(const LinkRates& rates, PortId port = kNoPort, const PeerRates& peer = {},
                      std::int64_t memory_bytes_per_us = 0);
  PortId add_port(const PortRates& rates);
  StreamId add_stream(DeviceId device);  // numbered from 0 over all devices
  void trace_to(TraceSink* sink);        // not owned; null: no sink
  void keep_digest();                    // from now on

  OpIndex kernel(StreamId stream, KernelTime time, Time not_before);
  // Copies in one direction of the host link. (A copy within the device is a kernel.)
  OpIndex copy(StreamId stream, CopyKind direction, std::int64_t bytes, Time not_before);
  // The stream's device copies from another one.
  OpIndex peer_copy(StreamId stream, DeviceId from, std::int64_t bytes, Time not_before);
  // Returns a new signal for all work that `stream` has so far. The caller maps events to signals.
  Signal record(StreamId stream, Time not_before);
  OpIndex wait(StreamId stream, Signal signal, Time not_before);
  void release(Signal signal);

  // Processes everything that happens at or before `now`.
  void advance(Time now);
  // Advances to `now`, then returns true if the signal is complete.
  bool done(Signal signal, Time now);
  // The host waits: runs until the signal is complete, and returns its time, which may be past.
  Time run_until(Signal signal);
  Time run_until_idle(StreamId stream);  // 0 for an unused stream
  Time drain();                          // returns makespan()

  Time now() const { return now_; }
  OpIndex submitted() const { return next_op_; }
  Time makespan() const;  // the latest end so far
  const StreamStats& stats(StreamId stream) const;
  DeviceStats stats(DeviceId device) const;
  // The sum of op_digest over the operations that finished since keep_digest(). It is the same for
  // every order of completion. Aborts if keep_digest() was not called.
  std::uint64_t digest() const;
  std::size_t held_bytes() const;  // bytes for queued operations and signals

 private:
  struct alignas(64) Stream {
    OpQueue ops;
    std::uint32_t device = 0;
    // The next stream in a list: of an engine's ready ones, a signal's waiting ones, or the woken.
    std::uint32_t next = kNone;
    bool waiting = false;      // pending at a signal
    bool copied_last = false;  // its latest kernel or copy is a copy
    Time ready = 0;            // when its head became ready
    StreamStats stats;
  };

  // One engine of a device: slot 4 * device + {compute, d2h, h2d, peer}.
  struct alignas(128) Unit {
    std::uint32_t user = kNone;         // the one stream that ever used it, or kShared
    std::uint32_t running = kNone;      // the stream whose head runs on it
    std::uint32_t first_ready = kNone;  // streams by (ready time, submission)
    std::uint32_t last_ready = kNone;
    bool dirty = false;      // must arbitrate at the end of this time
    bool contended = false;  // its device's kernels and copies slow others, or are slowed
    bool coupled = false;    // its copies may share links with others, or slow kernels
    bool tied = false;       // runs a copy that has entered links, or a kernel that copies slow
    Time start = 0;
    Time busy_ns = 0;
    std::int64_t bytes = 0;
    std::int64_t counted = 0;  // the bits of an operation's value that are bytes
    Time latency_ns = 0;       // of copies, like the next two
    std::int64_t rate_alone = 0;
    Route route;
    std::int64_t left = 0;  // if tied: work left at `as_of`, in thousandths of a byte or of a ns
    Time as_of = 0;
    std::int64_t rate = 0;  // of this work in a ns: a copy's bytes per us
  };

  Stream& stream_of(StreamId stream);
  OpIndex submit(Stream& s, OpKind kind, std::int64_t value, Time not_before);
  void submit_slowly(Stream& s, std::uint64_t tag, std::int64_t value, Time not_before);
  Signal record_in_new_block(StreamId stream, Time not_before);
  static bool use(Unit& unit, std::uint32_t stream);
  void contend(std::uint32_t device, std::initializer_list<std::uint32_t> units);
  void run_once();
  void run_to(Time until);
  inline void step();  // handles all events of the next event time
  inline std::uint32_t finish(std::uint32_t unit);
  void settle_rates();
  inline void run_from(std::uint32_t stream);
  inline void run_stream(std::uint32_t stream);
  void wake_at(std::uint32_t stream, OpIndex head, Time at);
  inline void pass_record(std::uint32_t signal, Time at);
  inline bool pass_wait(Stream& stream, std::uint32_t id, std::uint32_t signal, Time& at);
  void wake_waiters(std::uint32_t last_waiter);
  inline void enqueue(Unit& unit, std::uint32_t id, Stream& s, std::uint32_t stream);
  void enqueue_before_last(Unit& unit, std::uint32_t stream);
  inline static bool goes_first(const Stream& x, const Stream& y);
  inline void arbitrate(std::uint32_t unit);
  inline bool alone_on(const Unit& unit, std::uint32_t id, std::uint32_t stream) const;
  inline Time begin(Unit& unit, std::uint32_t id, std::uint32_t stream, Time at);
  Time begin_slowed(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at);
  Time begin_coupled(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at);
  void couple(Unit& unit);
  void enter(Unit& unit, std::int64_t bytes, Time at);
  inline void end_on(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at);
  void untie(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at);
  inline static Time at_rate(std::int64_t left, std::int64_t rate);
  static Time end_of(const Unit& unit);
  void set_rates();
  void set_rate(std::uint32_t unit);
  void set_speeds();
  void change_rate(std::uint32_t unit, std::int64_t rate);
  inline void complete(Stream& stream, std::uint32_t id, Time start, Time end);

  Time now_ = 0;
  Time horizon_ = 0;  // the earliest time at which more may be submitted
  OpIndex next_op_ = 0;
  std::uint64_t digest_ = 0;
  TraceSink* sink_ = nullptr;
  EventQueue events_;
  ChunkStore chunks_;
  SignalTable signals_;
  Links links_;
  std::vector<Unit> units_;
  MemoryRates memory_;
  std::vector<Stream> streams_;
  std::uint32_t first_woken_ = kNone;  // streams whose wait a record ended
  std::uint32_t last_woken_ = kNone;
  std::vector<std::uint32_t> dirty_;  // units to arbitrate: the first dirty_count_
  std::size_t dirty_count_ = 0;
  bool rates_vary_ = false;   // from now on, running operations may change their rate
  bool rates_dirty_ = false;  // some copy's rate may have changed
  bool watched_ = false;      // there is a sink, or the digest is kept
  bool keeps_digest_ = false;
};

}  // namespace ferry::sim

#include "sim/gpu/engine_submit.h"
