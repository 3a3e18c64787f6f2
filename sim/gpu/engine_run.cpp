// The engine's loop: handles events in the order of their time, and runs each stream until its head
// has to wait. Code that every operation needs is inlined into one function; rare cases are not.
#include <algorithm>
#include <utility>

#include "sim/gpu/engine.h"
#include "sim/gpu/engine_ops.h"

namespace ferry::sim {

using namespace engine;

// Returns the time that `left` takes, rounded up. Nothing else rounds.
inline Time Engine::at_rate(std::int64_t left, std::int64_t rate) {
  return (left + rate - 1) / rate;
}

Time Engine::end_of(const Unit& unit) { return unit.as_of + at_rate(unit.left, unit.rate); }

void Engine::run_once() {
  require(!events_.empty(), "waited for what was never submitted");
  step();
}

void Engine::run_to(Time until) {
  while (events_.next_time() <= until) step();
}

[[gnu::always_inline]] inline void Engine::step() {
  now_ = events_.next_time();
  do {
    const std::uint32_t slot = events_.pop_slot();
    run_from(slot % 2 == 0 ? finish(slot / 2) : slot / 2);
  } while (events_.next_time() == now_);
  const std::size_t dirty = std::exchange(dirty_count_, 0);
  for (std::size_t i = 0; i < dirty; ++i) arbitrate(dirty_[i]);
  if (rates_vary_) settle_rates();
}

// Returns the stream whose operation finished. It goes on.
inline std::uint32_t Engine::finish(std::uint32_t id) {
  Unit& unit = units_[id];
  const std::uint32_t stream = unit.running;
  Stream& s = streams_[stream];
  end_on(unit, id, s.ops.front(), now_);
  unit.dirty = true;
  dirty_[dirty_count_++] = id;
  complete(s, stream, unit.start, now_);
  return stream;
}

// Called after everything that starts and ends at the time now_.
void Engine::settle_rates() {
  if (rates_dirty_) set_rates();
  if (memory_.any_changed()) set_speeds();
}

// Sets the speed of kernels on devices where copies now use more or less of the memory.
void Engine::set_speeds() {
  memory_.each_changed([this](std::uint32_t device) {
    const std::uint32_t stream = units_[device * kUnits + kKernel].running;
    if (stream == kNone) return;
    const std::int64_t share = memory_share_of(streams_[stream].ops.front());
    if (share > 0) change_rate(device * kUnits + kKernel, memory_.speed(device, share));
  });
}

// Runs a stream, and those that its records wake, and so on: a work list in the order of waking.
[[gnu::always_inline]] inline void Engine::run_from(std::uint32_t stream) {
  for (;;) {
    run_stream(stream);
    if (first_woken_ == kNone) return;
    stream = std::exchange(first_woken_, streams_[first_woken_].next);
  }
}

// Runs the stream until its head has to wait for something. `at` is the stream's own time. It may
// run ahead of now_, up to the horizon, if no other stream can take its engine.
[[gnu::always_inline]] inline void Engine::run_stream(std::uint32_t id) {
  Stream& stream = streams_[id];
  Time at = stream.waiting ? stream.ready : now_;
  while (!stream.ops.empty()) {
    const QueuedOp& op = stream.ops.front();
    if (op.not_before > at) {
      if (op.not_before > horizon_) return wake_at(id, index_of(op), op.not_before);
      at = op.not_before;
    }
    Time start = at;
    const OpKind kind = kind_of(op);
    if (kind == OpKind::kRecord) {
      pass_record(signal_of(op), at);
    } else if (kind == OpKind::kWait) {
      if (!stream.waiting) stream.ready = at;
      if (!pass_wait(stream, id, signal_of(op), at)) return;
      start = stream.ready;
    } else {
      const std::uint32_t number = stream.device * kUnits + static_cast<std::uint32_t>(kind);
      Unit& unit = units_[number];
      if (!alone_on(unit, number, id)) {
        if (at > now_) return wake_at(id, index_of(op), at);
        stream.ready = at;
        return enqueue(unit, number, stream, id);
      }
      at = begin(unit, number, id, at);
      if (at > horizon_) return events_.push({at, index_of(op), unit_slot(number)});
      end_on(unit, number, op, at);
    }
    complete(stream, id, start, at);
  }
}

[[gnu::noinline]] void Engine::wake_at(std::uint32_t id, OpIndex head, Time at) {
  events_.push({at, kWakeClass | head, stream_slot(id)});
}

inline void Engine::pass_record(std::uint32_t number, Time at) {
  SignalState& signal = signals_[number];
  signal.time = at;
  if (signal.link != kNone) {
    wake_waiters(signal.link);
    signal.link = kNone;
  }
  signals_.drop_user(signal, number);
}

// Moves `at` to the signal's time, which may be after now_. Returns false if it is not known yet.
inline bool Engine::pass_wait(Stream& stream, std::uint32_t id, std::uint32_t number, Time& at) {
  SignalState& signal = signals_[number];
  stream.waiting = signal.time == SignalState::kPending;
  if (stream.waiting) {
    stream.next = std::exchange(signal.link, id);
    return false;
  }
  const Time blocked = std::max<Time>(signal.time - at, 0);
  stream.stats.blocked_ns += blocked;
  stream.stats.blocked_on_copies_ns += signal.of_copy() ? blocked : 0;
  at += blocked;
  signals_.drop_user(signal, number);
  return true;
}

// The list begins with the last waiter. They wake in the order in which they began to wait.
void Engine::wake_waiters(std::uint32_t last_waiter) {
  std::uint32_t first = kNone;
  for (std::uint32_t id = last_waiter; id != kNone;) {
    const std::uint32_t earlier = std::exchange(streams_[id].next, first);
    first = std::exchange(id, earlier);
  }
  (first_woken_ == kNone ? first_woken_ : streams_[last_woken_].next) = first;
  last_woken_ = last_waiter;
}

// True if x became ready before y or, at the same time, was submitted before y.
inline bool Engine::goes_first(const Stream& x, const Stream& y) {
  if (x.ready != y.ready) return x.ready < y.ready;
  return x.ops.front().tag < y.ops.front().tag;
}

// An engine that other streams already wait for is running, or is dirty.
inline void Engine::enqueue(Unit& unit, std::uint32_t id, Stream& s, std::uint32_t stream) {
  s.next = kNone;
  if (unit.first_ready == kNone) {
    unit.first_ready = unit.last_ready = stream;
    if (unit.running == kNone && !std::exchange(unit.dirty, true)) dirty_[dirty_count_++] = id;
  } else if (Stream& last = streams_[unit.last_ready]; goes_first(last, s)) {
    last.next = stream;
    unit.last_ready = stream;
  } else {
    enqueue_before_last(unit, stream);
  }
}

void Engine::enqueue_before_last(Unit& unit, std::uint32_t stream) {
  Stream& s = streams_[stream];
  std::uint32_t* link = &unit.first_ready;
  while (goes_first(streams_[*link], s)) link = &streams_[*link].next;
  s.next = std::exchange(*link, stream);
}

// True if, before the horizon, nothing else can take the engine, change the rate of what this
// stream runs, or be slowed by it. Later submissions start at the horizon or after it.
inline bool Engine::alone_on(const Unit& unit, std::uint32_t id, std::uint32_t stream) const {
  if (unit.user != stream || unit.contended) return false;
  if (id % kUnits == kKernel) return true;
  if (links_.shared(id / kUnits)) return false;
  return links_.steady(id / kUnits) || units_[other_direction(id)].user == kNone;
}

// Starts the stream's head on a free engine. Returns its end, if no rate changes until then.
inline Time Engine::begin(Unit& unit, std::uint32_t id, std::uint32_t stream, Time at) {
  const QueuedOp& op = streams_[stream].ops.front();
  unit.running = stream;
  unit.start = at;
  if (kind_of(op) == OpKind::kKernel) {
    if (memory_share_of(op) == 0) return at + ns_of(op);
    return begin_slowed(unit, id, op, at);
  }
  if (unit.coupled) return begin_coupled(unit, id, op, at);
  return at + unit.latency_ns + at_rate(thousandths(op.value), unit.rate_alone);
}

// Starts a kernel that copies slow.
Time Engine::begin_slowed(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at) {
  unit.tied = true;
  unit.left = ns_of(op) * kWhole;
  unit.as_of = at;
  unit.rate = memory_.speed(id / kUnits, memory_share_of(op));
  return end_of(unit);
}

// Starts a copy that may share links with others, or slow kernels.
Time Engine::begin_coupled(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at) {
  if (kind_of(op) == OpKind::kPeer) unit.route = links_.between(source_of(op), id / kUnits);
  enter(unit, bytes_of(op), at);
  return end_of(unit);
}

void Engine::enter(Unit& unit, std::int64_t bytes, Time at) {
  unit.tied = true;
  links_.enter(unit.route);
  unit.left = thousandths(bytes);
  unit.as_of = at + links_.latency_ns(unit.route);
  unit.rate = links_.rate(unit.route);
  memory_.take(unit.route, unit.rate);
}

inline void Engine::end_on(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at) {
  unit.running = kNone;
  unit.busy_ns += at - unit.start;
  unit.bytes += op.value & unit.counted;
  if (unit.tied) untie(unit, id, op, at);
}

void Engine::untie(Unit& unit, std::uint32_t id, const QueuedOp& op, Time at) {
  unit.tied = false;
  if (kind_of(op) == OpKind::kKernel) {
    return memory_.add_slowed(id / kUnits, at - unit.start - ns_of(op));
  }
  links_.leave(unit.route);
  memory_.take(unit.route, -unit.rate);
}

// A free engine takes the first ready stream.
inline void Engine::arbitrate(std::uint32_t id) {
  Unit& unit = units_[id];
  unit.dirty = false;
  if (unit.running == kNone && unit.first_ready != kNone) {
    const std::uint32_t stream = unit.first_ready;
    const Stream& s = streams_[stream];
    unit.first_ready = s.next;
    const OpIndex op = index_of(s.ops.front());
    events_.push({begin(unit, id, stream, now_), op, unit_slot(id)});
  }
  if (!unit.coupled) return;
  if (id % kUnits == kPeer || links_.shared(id / kUnits)) {
    rates_dirty_ = true;
  } else {
    set_rate(other_direction(id));
  }
}

// Sets the rates of all running copies: devices are few, and one copy's end speeds up many.
void Engine::set_rates() {
  rates_dirty_ = false;
  for (std::uint32_t id = 0; id < units_.size(); ++id) {
    if (id % kUnits != kKernel) set_rate(id);
  }
}

// Sets the rate of a running copy after other copies started or ended.
void Engine::set_rate(std::uint32_t id) {
  Unit& unit = units_[id];
  if (!unit.tied) return;
  const std::int64_t rate = links_.rate(unit.route);
  if (rate == unit.rate) return;
  memory_.take(unit.route, rate - unit.rate);
  change_rate(id, rate);
}

// Counts the work done at the old rate, and moves the end.
void Engine::change_rate(std::uint32_t id, std::int64_t rate) {
  Unit& unit = units_[id];
  if (rate == unit.rate) return;
  if (now_ > unit.as_of) {
    unit.left -= (now_ - unit.as_of) * unit.rate;
    unit.as_of = now_;
  }
  unit.rate = rate;
  events_.move(unit_slot(id), end_of(unit));
}

// Ends the operation at the front of the stream's queue.
[[gnu::always_inline]] inline void Engine::complete(Stream& stream, std::uint32_t id, Time start,
                                                    Time end) {
  const QueuedOp& op = stream.ops.front();
  stream.stats.end_ns = end;
  if (watched_) {
    if (keeps_digest_) digest_ += op_digest(index_of(op), start, end);
    if (sink_ != nullptr) {
      sink_->completed({index_of(op), StreamId{id}, kind_of(op), start, end, op.not_before});
    }
  }
  stream.ops.pop(chunks_);
}

}  // namespace ferry::sim
