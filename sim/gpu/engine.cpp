#include "sim/gpu/engine.h"

#include <algorithm>
#include <utility>

#include "sim/gpu/engine_ops.h"

namespace ferry::sim {

using namespace engine;

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
  dirty_.resize(units_.size());
  Unit* units = &units_[std::size_t{id} * kUnits];
  units[kDown].route = {.from = id};
  units[kDown].rate_alone = rates.d2h_alone;
  units[kUp].route = {.to = id};
  units[kUp].rate_alone = rates.h2d_alone;
  for (Unit* unit : {&units[kDown], &units[kUp], &units[kPeer]}) {
    unit->counted = unit == &units[kPeer] ? kPeerBytes : ~std::int64_t{0};
    unit->latency_ns = rates.latency_ns;
    unit->coupled =
        unit == &units[kPeer] || links_.shared(id) || !links_.steady(id) || memory_.is_known(id);
  }
  rates_vary_ = rates_vary_ || units[kUp].coupled;
  events_.add_slots(unit_slot(static_cast<std::uint32_t>(units_.size())));
  return DeviceId{id};
}

void Engine::trace_to(TraceSink* sink) {
  sink_ = sink;
  watched_ = sink_ != nullptr || keeps_digest_;
}

void Engine::keep_digest() { watched_ = keeps_digest_ = true; }

std::uint64_t Engine::digest() const {
  require(keeps_digest_, "asked for a digest that nobody kept");
  return digest_;
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

void Engine::submit_slowly(Stream& s, std::uint64_t tag, std::int64_t value, Time not_before) {
  const QueuedOp op{tag, not_before, value};
  if (s.ops.empty()) {
    wake_at(static_cast<std::uint32_t>(&s - streams_.data()), index_of(op), not_before);
  }
  s.ops.push(chunks_, op);
}

// Marks engines of a device that from now on slow others, or are slowed.
void Engine::contend(std::uint32_t device, std::initializer_list<std::uint32_t> units) {
  if (!memory_.is_known(device)) return;
  for (const std::uint32_t unit : units) units_[device * kUnits + unit].contended = true;
}

// From now on, other copies may change the rate of this engine's copies, or the reverse. The copy
// that runs now has had the rate of a lone copy so far.
void Engine::couple(Unit& unit) {
  if (!std::exchange(unit.coupled, true) && unit.running != kNone) {
    enter(unit, bytes_of(streams_[unit.running].ops.front()), unit.start);
  }
}

OpIndex Engine::peer_copy(StreamId stream, DeviceId from, std::int64_t bytes, Time not_before) {
  require(bytes >= 0 && bytes >> kPeerBytesBits == 0, "a peer copy must have 0 to 2.8e14 bytes");
  Stream& s = stream_of(stream);
  const std::uint32_t device = s.device;
  const auto source = static_cast<std::uint32_t>(from);
  require(source < links_.devices() && source != device, "a peer copy is from another device");
  s.copied_last = true;
  contend(source, {kKernel});
  contend(device, {kKernel});
  rates_vary_ = true;
  const Route route = links_.between(source, device);
  if (!route.on_peer_links) {
    for (const std::uint32_t end : {source, device}) {
      for (const std::uint32_t unit : {kDown, kUp}) couple(units_[end * kUnits + unit]);
    }
  }
  links_.announce(route);
  const std::int64_t value = std::int64_t{source} << kPeerBytesBits | bytes;
  return submit(s, OpKind::kPeer, value, not_before);
}

Signal Engine::record_in_new_block(StreamId stream, Time not_before) {
  signals_.add_block();
  return record(stream, not_before);
}

void Engine::release(Signal signal) { signals_.drop_user(static_cast<std::uint32_t>(signal)); }

void Engine::advance(Time now) {
  horizon_ = now;
  run_to(now);
  now_ = std::max(now_, now);
}

bool Engine::done(Signal signal, Time now) {
  advance(now);
  return signals_[static_cast<std::uint32_t>(signal)].time != SignalState::kPending;
}

// The host continues at a time that is not known yet, and may submit then. So nothing runs ahead.
Time Engine::run_until(Signal signal) {
  const SignalState& state = signals_[static_cast<std::uint32_t>(signal)];
  for (horizon_ = 0; state.time == SignalState::kPending;) run_once();
  return state.time;
}

Time Engine::run_until_idle(StreamId stream) {
  const Stream& s = streams_[number(stream)];
  for (horizon_ = 0; !s.ops.empty();) run_once();
  return s.stats.end_ns;
}

Time Engine::drain() {
  horizon_ = EventQueue::kNever - 1;
  run_to(horizon_);
  const Time end = makespan();
  now_ = std::max(now_, end);
  return end;
}

Time Engine::makespan() const {
  Time latest = 0;
  for (const Stream& stream : streams_) latest = std::max(latest, stream.stats.end_ns);
  return latest;
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

std::size_t Engine::held_bytes() const {
  return chunks_.held_bytes() + signals_.held_bytes() + streams_.capacity() * sizeof(OpQueue);
}

}  // namespace ferry::sim
