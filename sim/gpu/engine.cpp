#include "sim/gpu/engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ferry::sim {
namespace {

constexpr std::uint32_t kUnits = 4;  // engines of a device
constexpr std::uint32_t kKernel = 0;
constexpr std::uint32_t kDown = 1;            // device to host
constexpr std::uint32_t kUp = 2;              // host to device
constexpr std::uint32_t kPeer = 3;            // from other devices to this one
constexpr std::uint32_t kShared = kNone - 1;  // a Unit's user when it has several
constexpr std::int64_t kMaxBytes = EventHeap::kNever / 1000;
constexpr int kPeerBytesBits = 48;  // bits of a peer copy's value; its source is above them
constexpr int kKernelNsBits = 50;   // of a kernel's value; its memory's share is above them
constexpr std::int64_t kWhole = MemoryRates::kWhole;
constexpr std::uint32_t kMaxDevices = 1u << 15;
constexpr std::uint64_t kWakeClass = std::uint64_t{1} << 63;  // after finishes at its time

// Slots of the event heap.
std::uint32_t unit_slot(std::uint32_t unit) { return unit * 2; }
std::uint32_t stream_slot(std::uint32_t stream) { return stream * 2 + 1; }

OpKind kind_of(const QueuedOp& op) { return static_cast<OpKind>(op.tag & 7); }
OpIndex index_of(const QueuedOp& op) { return op.tag >> 3; }
std::uint32_t signal_of(const QueuedOp& op) { return static_cast<std::uint32_t>(op.value); }
std::uint32_t number(StreamId stream) { return static_cast<std::uint32_t>(stream); }

std::int64_t bytes_of(const QueuedOp& op) {
  if (kind_of(op) != OpKind::kPeer) return op.value;
  return op.value & ((std::int64_t{1} << kPeerBytesBits) - 1);
}
Time ns_of(const QueuedOp& kernel) { return kernel.value & ((Time{1} << kKernelNsBits) - 1); }
std::int64_t memory_share_of(const QueuedOp& kernel) { return kernel.value >> kKernelNsBits; }
std::uint32_t source_of(const QueuedOp& op) {
  return static_cast<std::uint32_t>(op.value >> kPeerBytesBits);
}

std::uint32_t other_direction(std::uint32_t unit) {
  return unit % kUnits == kDown ? unit + 1 : unit - 1;
}

// Aborts on a programmer's error.
void require(bool holds, const char* what) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "ferry::sim::Engine: %s\n", what);
  std::abort();
}

}  // namespace

DeviceId Engine::add_device(const LinkRates& rates, PortId port, const PeerRates& peer,
                            std::int64_t memory_bytes_per_us) {
  require(std::min({rates.h2d_alone, rates.d2h_alone, rates.h2d_both, rates.d2h_both}) > 0,
          "a link rate must be at least 1 byte per us");
  require(std::min({rates.latency_ns, peer.latency_ns, peer.bytes_per_us}) >= 0,
          "a latency or a peer link's rate must not be negative");
  require(memory_bytes_per_us >= 0, "a memory's rate must not be negative");
  require(port == kNoPort || static_cast<std::size_t>(port) < links_.ports(), "no such port");
  const auto id = static_cast<std::uint32_t>(links_.devices());
  require(id < kMaxDevices, "too many devices");
  links_.add_device(rates, port, peer);
  units_.resize(units_.size() + kUnits);
  memory_.add_device(memory_bytes_per_us);
  Unit* units = &units_[std::size_t{id} * kUnits];
  units[kDown].route = {.from = id};
  units[kUp].route = {.to = id};
  events_.add_slots(unit_slot(static_cast<std::uint32_t>(units_.size())));
  return DeviceId{id};
}

PortId Engine::add_port(const PortRates& rates) {
  require(std::min(rates.up_bytes_per_us, rates.down_bytes_per_us) > 0,
          "a port's rate must be at least 1 byte per us");
  return links_.add_port(rates);
}

StreamId Engine::add_stream(DeviceId device) {
  require(static_cast<std::size_t>(device) < links_.devices(), "no such device");
  const auto id = static_cast<std::uint32_t>(streams_.size());
  streams_.emplace_back().device = static_cast<std::uint32_t>(device);
  events_.add_slots(stream_slot(id) + 1);
  return StreamId{id};
}

void Engine::submit(StreamId stream, OpKind kind, std::int64_t value, Time not_before) {
  require(number(stream) < streams_.size(), "no such stream");
  require(not_before >= now_, "an operation was issued before the time already advanced to");
  Stream& s = streams_[number(stream)];
  const OpIndex op = next_op_++;
  s.ops.push(chunks_, {op << 3 | static_cast<std::uint64_t>(kind), not_before, value});
  if (!s.active) {
    s.active = true;
    events_.push({not_before, kWakeClass | op, stream_slot(number(stream))});
  }
}

// A second stream makes an engine shared for ever: running ahead needs to know no more. True if the
// stream is the first.
bool Engine::use(Unit& unit, std::uint32_t stream) {
  if (unit.user == stream) return false;
  const bool first = unit.user == kNone;
  unit.user = first ? stream : kShared;
  return first;
}

// The engines of a device that slow others, or are slowed, from now on.
void Engine::contend(std::uint32_t device, std::initializer_list<std::uint32_t> units) {
  if (!memory_.is_known(device)) return;
  for (const std::uint32_t unit : units) units_[device * kUnits + unit].contended = true;
}

OpIndex Engine::kernel(StreamId stream, KernelTime time, Time not_before) {
  require(static_cast<std::uint64_t>(time.ns) >> kKernelNsBits == 0, "a kernel takes 0 to 1e15 ns");
  std::int64_t value = std::max<Time>(time.ns, 1);
  if (time.memory_ns != 0) {
    require(time.memory_ns > 0, "a kernel's time of the memory must not be negative");
    const std::int64_t share = (std::min(time.memory_ns, value) * kWhole + value - 1) / value;
    value |= share << kKernelNsBits;
  }
  submit(stream, OpKind::kKernel, value, not_before);
  Stream& s = streams_[number(stream)];
  s.copied_last = false;
  if (use(units_[s.device * kUnits], number(stream))) contend(s.device, {kDown, kUp});
  return next_op_ - 1;
}

OpIndex Engine::copy(StreamId stream, CopyKind direction, std::int64_t bytes, Time not_before) {
  require(bytes >= 0 && bytes < kMaxBytes, "a copy must have 0 to 9e15 bytes");
  require(direction != CopyKind::kDeviceToDevice, "a copy within a device is a kernel");
  require(direction != CopyKind::kPeer, "a copy between devices says its source: peer_copy()");
  const bool down = direction == CopyKind::kDeviceToHost;
  submit(stream, down ? OpKind::kDeviceToHost : OpKind::kHostToDevice, bytes, not_before);
  Stream& s = streams_[number(stream)];
  s.copied_last = true;
  if (use(units_[s.device * kUnits + (down ? kDown : kUp)], number(stream))) {
    contend(s.device, {kKernel});
  }
  return next_op_ - 1;
}

OpIndex Engine::peer_copy(StreamId stream, DeviceId from, std::int64_t bytes, Time not_before) {
  require(number(stream) < streams_.size(), "no such stream");
  require(bytes >= 0 && bytes >> kPeerBytesBits == 0, "a peer copy must have 0 to 2.8e14 bytes");
  const std::uint32_t device = streams_[number(stream)].device;
  const auto source = static_cast<std::uint32_t>(from);
  require(source < links_.devices() && source != device, "a peer copy is from another device");
  submit(stream, OpKind::kPeer, std::int64_t{source} << kPeerBytesBits | bytes, not_before);
  streams_[number(stream)].copied_last = true;
  contend(source, {kKernel});
  contend(device, {kKernel});
  links_.announce(links_.between(source, device));
  return next_op_ - 1;
}

Signal Engine::record(StreamId stream, Time not_before) {
  require(number(stream) < streams_.size(), "no such stream");
  const std::uint32_t id = signals_.make(streams_[number(stream)].copied_last);
  submit(stream, OpKind::kRecord, id, not_before);
  return Signal{id};
}

OpIndex Engine::wait(StreamId stream, Signal signal, Time not_before) {
  const auto id = static_cast<std::uint32_t>(signal);
  require(id < signals_.size(), "no such signal");
  submit(stream, OpKind::kWait, id, not_before);
  ++signals_[id].users;
  return next_op_ - 1;
}

void Engine::release(Signal signal) { signals_.drop_user(static_cast<std::uint32_t>(signal)); }

void Engine::advance(Time now) {
  horizon_ = now;
  while (!events_.empty() && events_.next_time() <= now) step();
  now_ = std::max(now_, now);
}

bool Engine::done(Signal signal, Time now) {
  advance(now);
  return signals_[static_cast<std::uint32_t>(signal)].time != SignalState::kPending;
}

// The host goes on at a time not known yet, and may submit then, so nothing may run ahead.
Time Engine::run_until(Signal signal) {
  const SignalState& state = signals_[static_cast<std::uint32_t>(signal)];
  for (horizon_ = 0; state.time == SignalState::kPending;) step();
  return state.time;
}

Time Engine::run_until_idle(StreamId stream) {
  const Stream& s = streams_[number(stream)];
  for (horizon_ = 0; s.active;) step();
  return s.stats.end_ns;
}

Time Engine::drain() {
  horizon_ = EventHeap::kNever - 1;
  while (!events_.empty()) step();
  now_ = std::max(now_, makespan_);
  return makespan_;
}

const StreamStats& Engine::stats(StreamId stream) const { return streams_[number(stream)].stats; }

DeviceStats Engine::stats(DeviceId device) const {
  const Unit* units = &units_[static_cast<std::size_t>(device) * kUnits];
  return {.compute_busy_ns = units[0].busy_ns,
          .slowed_ns = memory_.slowed_ns(static_cast<std::uint32_t>(device)),
          .d2h_busy_ns = units[kDown].busy_ns,
          .h2d_busy_ns = units[kUp].busy_ns,
          .peer_busy_ns = units[kPeer].busy_ns,
          .d2h_bytes = units[kDown].bytes,
          .h2d_bytes = units[kUp].bytes,
          .peer_bytes = units[kPeer].bytes};
}

std::size_t Engine::held_bytes() const { return chunks_.held_bytes() + signals_.held_bytes(); }

// This is the only place that rounds.
Time Engine::end_of(const Unit& unit) {
  return unit.as_of + (unit.left + unit.rate - 1) / unit.rate;
}

void Engine::step() {
  require(!events_.empty(), "waited for what was never submitted");
  now_ = events_.next_time();
  do {
    const std::uint32_t slot = events_.pop().slot;
    if (slot % 2 == 0) {
      finish(slot / 2);
    } else {
      runnable_.push_back(slot / 2);
    }
    run_streams();
  } while (events_.next_time() == now_);
  for (const std::uint32_t unit : dirty_) arbitrate(unit);
  dirty_.clear();
  if (rates_dirty_) set_rates();
  memory_.each_changed([this](std::uint32_t device) {
    const std::uint32_t stream = units_[device * kUnits + kKernel].running;
    if (stream == kNone) return;
    const std::int64_t share = memory_share_of(streams_[stream].ops.front());
    if (share > 0) change_rate(device * kUnits + kKernel, memory_.speed(device, share));
  });
}

void Engine::finish(std::uint32_t id) {
  Unit& unit = units_[id];
  const std::uint32_t stream = unit.running;
  const QueuedOp& op = streams_[stream].ops.front();
  end_on(id, op, now_);
  if (!unit.dirty) {
    unit.dirty = true;
    dirty_.push_back(id);
  }
  complete(streams_[stream], stream, op, unit.start, now_);
  runnable_.push_back(stream);
}

// Records wake streams, whose records wake further ones: a work list, in the order of waking.
void Engine::run_streams() {
  for (std::size_t i = 0; i < runnable_.size(); ++i) run_stream(runnable_[i]);
  runnable_.clear();
}

// Runs the stream until its head has to wait for something. `at` is the stream's own time: it may
// run ahead of now_, up to the horizon, where no other stream can take its engine.
void Engine::run_stream(std::uint32_t id) {
  Stream& stream = streams_[id];
  Time at = stream.waiting ? stream.ready : now_;
  while (!stream.ops.empty()) {
    const QueuedOp& op = stream.ops.front();
    if (op.not_before > at) {
      if (op.not_before > horizon_) return wake_at(id, op.not_before);
      at = op.not_before;
    }
    const OpKind kind = kind_of(op);
    if (kind == OpKind::kRecord) {
      pass_record(op, at);
      complete(stream, id, op, at, at);
    } else if (kind == OpKind::kWait) {
      if (!stream.waiting) stream.ready = at;
      if (!pass_wait(stream, id, op, at)) return;
      complete(stream, id, op, stream.ready, at);
    } else {
      const std::uint32_t unit = stream.device * kUnits + static_cast<std::uint32_t>(kind);
      if (!alone_on(unit, id)) {
        if (at > now_) return wake_at(id, at);
        stream.ready = at;
        return enqueue(unit, id);
      }
      const Time end = begin(unit, id, at);
      if (end > horizon_) return events_.push({end, index_of(op), unit_slot(unit)});
      at = end;
      end_on(unit, op, at);
      complete(stream, id, op, units_[unit].start, at);
    }
  }
  stream.active = false;
}

void Engine::wake_at(std::uint32_t id, Time at) {
  events_.push({at, kWakeClass | index_of(streams_[id].ops.front()), stream_slot(id)});
}

void Engine::pass_record(const QueuedOp& op, Time at) {
  SignalState& signal = signals_[signal_of(op)];
  signal.time = at;
  if (signal.link != kNone) wake_waiters(signal.link);
  signal.link = kNone;
  signals_.drop_user(signal_of(op));
}

// Moves `at` on to the signal's time, which may lie ahead of now_; false if it is not known yet.
bool Engine::pass_wait(Stream& stream, std::uint32_t id, const QueuedOp& op, Time& at) {
  SignalState& signal = signals_[signal_of(op)];
  stream.waiting = signal.time == SignalState::kPending;
  if (stream.waiting) {
    stream.next = std::exchange(signal.link, id);
    return false;
  }
  if (signal.time > at) {
    stream.stats.blocked_ns += signal.time - at;
    if (signal.of_copy) stream.stats.blocked_on_copies_ns += signal.time - at;
    at = signal.time;
  }
  signals_.drop_user(signal_of(op));
  return true;
}

// The list has the last waiter first; they wake in the order in which they began to wait.
void Engine::wake_waiters(std::uint32_t last_waiter) {
  const auto first = static_cast<std::ptrdiff_t>(runnable_.size());
  for (std::uint32_t id = last_waiter; id != kNone; id = streams_[id].next) runnable_.push_back(id);
  std::reverse(runnable_.begin() + first, runnable_.end());
}

bool Engine::goes_first(std::uint32_t a, std::uint32_t b) const {
  const Stream& x = streams_[a];
  const Stream& y = streams_[b];
  if (x.ready != y.ready) return x.ready < y.ready;
  return x.ops.front().tag < y.ops.front().tag;
}

void Engine::enqueue(std::uint32_t id, std::uint32_t stream) {
  Unit& unit = units_[id];
  if (!unit.dirty && unit.running == kNone) {
    unit.dirty = true;
    dirty_.push_back(id);
  }
  Stream& s = streams_[stream];
  s.next = kNone;
  if (unit.first_ready == kNone) {
    unit.first_ready = unit.last_ready = stream;
  } else if (goes_first(unit.last_ready, stream)) {
    streams_[unit.last_ready].next = stream;
    unit.last_ready = stream;
  } else if (goes_first(stream, unit.first_ready)) {
    s.next = unit.first_ready;
    unit.first_ready = stream;
  } else {
    std::uint32_t before = unit.first_ready;
    while (goes_first(streams_[before].next, stream)) before = streams_[before].next;
    s.next = streams_[before].next;
    streams_[before].next = stream;
  }
}

// True if, before the horizon, nothing else can take the engine nor change the rate of what this
// stream runs, nor be slowed by it: later submissions start at the horizon or after it.
bool Engine::alone_on(std::uint32_t id, std::uint32_t stream) const {
  if (units_[id].user != stream || units_[id].contended) return false;
  if (id % kUnits == kKernel) return true;
  if (links_.shared(id / kUnits)) return false;
  if (units_[other_direction(id)].user == kNone) return true;
  const LinkRates& link = links_.pcie(id / kUnits);
  return link.h2d_alone == link.h2d_both && link.d2h_alone == link.d2h_both;
}

// Starts the stream's head on a free engine. Returns its end if nothing changes.
Time Engine::begin(std::uint32_t id, std::uint32_t stream, Time at) {
  Unit& unit = units_[id];
  const QueuedOp& op = streams_[stream].ops.front();
  unit.running = stream;
  unit.start = at;
  if (kind_of(op) == OpKind::kKernel) {
    if (memory_share_of(op) == 0) return at + ns_of(op);
    unit.left = ns_of(op) * kWhole;
    unit.as_of = at;
    unit.rate = memory_.speed(id / kUnits, memory_share_of(op));
    return end_of(unit);
  }
  if (kind_of(op) == OpKind::kPeer) unit.route = links_.between(source_of(op), id / kUnits);
  links_.enter(unit.route);
  unit.left = std::max<std::int64_t>(bytes_of(op) * 1000, 1);
  unit.as_of = at + links_.latency_ns(unit.route);
  unit.rate = links_.rate(unit.route);
  memory_.take(unit.route, unit.rate);
  return end_of(unit);
}

void Engine::end_on(std::uint32_t id, const QueuedOp& op, Time at) {
  Unit& unit = units_[id];
  unit.running = kNone;
  unit.busy_ns += at - unit.start;
  if (kind_of(op) == OpKind::kKernel) {
    if (memory_share_of(op) > 0) memory_.add_slowed(id / kUnits, at - unit.start - ns_of(op));
    return;
  }
  unit.bytes += bytes_of(op);
  links_.leave(unit.route);
  memory_.take(unit.route, -unit.rate);
}

// A free engine takes the first stream that is ready.
void Engine::arbitrate(std::uint32_t id) {
  Unit& unit = units_[id];
  unit.dirty = false;
  if (unit.running == kNone && unit.first_ready != kNone) {
    const std::uint32_t stream = unit.first_ready;
    unit.first_ready = streams_[stream].next;
    const OpIndex op = index_of(streams_[stream].ops.front());
    events_.push({begin(id, stream, now_), op, unit_slot(id)});
  }
  if (id % kUnits == kKernel) return;
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

// Other copies started or ended.
void Engine::set_rate(std::uint32_t id) {
  Unit& unit = units_[id];
  if (unit.running == kNone) return;
  const std::int64_t rate = links_.rate(unit.route);
  if (rate == unit.rate) return;
  memory_.take(unit.route, rate - unit.rate);
  change_rate(id, rate);
}

// Counts what was done at the old rate, and moves the end.
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

// The front of the stream's queue has ended.
void Engine::complete(Stream& stream, std::uint32_t id, const QueuedOp& op, Time start, Time end) {
  stream.stats.end_ns = end;
  makespan_ = std::max(makespan_, end);
  digest_ += op_digest(index_of(op), start, end);
  if (sink_ != nullptr) {
    sink_->completed({index_of(op), StreamId{id}, kind_of(op), start, end, op.not_before});
  }
  stream.ops.pop(chunks_);
}

}  // namespace ferry::sim
