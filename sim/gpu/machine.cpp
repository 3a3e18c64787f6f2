// Implements machine.h. Each call becomes an operation of the engine, which gives the times and, if
// there are consumers, a StreamOp for them.
#include "sim/gpu/machine.h"

#include <algorithm>
#include <utility>

#include "formats/error.h"
#include "formats/limits.h"
#include "sim/check/liveness.h"
#include "sim/gpu/host_pool.h"
#include "sim/gpu/mutex.h"
#include "sim/gpu/torch_host_pool.h"

namespace ferry::sim {
namespace {

std::unique_ptr<PinnedPool> make_host_pool(const MachineOptions& options, PoolEvents& events) {
  if (options.host_pool == HostPoolKind::kPyTorchs) {
    return std::make_unique<TorchHostPool>(options.host_bytes, events);
  }
  return std::make_unique<HostPool>(options.host_bytes, events);
}

}  // namespace

StorageImpl::StorageImpl(Machine& owner, std::uint32_t on, Block* pool_block, std::int64_t size,
                         std::uint64_t number, MemoryKind of, std::uint32_t made_at)
    : machine(&owner),
      device(on),
      block(pool_block),
      bytes(size),
      identity(number),
      address(pool_block ? pool_block->address() : 0),
      kind(of),
      place(made_at) {}

StorageImpl::~StorageImpl() { machine->free(*this); }

EventImpl::~EventImpl() { machine->forget(*this); }

Machine::Machine(const MachineOptions& options)
    : options_(options), tokens_(*this), host_pool_(make_host_pool(options, tokens_)) {
  engine_.keep_digest();
  const bool ports = options.devices > 1 && options.devices_per_port > 0;
  PortId port = kNoPort;
  for (std::uint32_t i = 0; i < std::max(options.devices, 1u); ++i) {
    if (ports && i % options.devices_per_port == 0) port = engine_.add_port(options.port);
    add_device(port);
  }
  current_ = compute_stream(0);
  locks() = {};
}

// A deleter can be anybody's code, and an allocation of host memory waits for copies. Nobody may
// have to wait for a lock during either.
void Machine::check_unlocked(const char* what) {
  if (locks().held == 0 || !hazards_.empty()) return;
  hazards_.push_back(check::misused_lock(std::string(what) + " under the core's lock"));
}

void Machine::add_device(PortId port) {
  const std::uint32_t number = devices();
  const DevicePoolOptions memory{.total_bytes = options_.device_bytes,
                                 .context_bytes = options_.context_bytes,
                                 .conf = options_.alloc_conf};
  devices_.emplace_back(
      engine_.add_device(options_.links, port, options_.peer, options_.memory_bytes_per_us), number,
      memory, tokens_);
  PerDevice& device = devices_.back();
  device.compute.push_back(add_stream(number));
  for (StreamId& lane : device.lanes) lane = add_stream(number);
}

StreamId Machine::add_stream(std::uint32_t device) {
  stream_devices_.push_back(device);
  return engine_.add_stream(devices_[device].id);
}

StreamId Machine::compute_stream(std::uint32_t device, std::uint32_t number) {
  std::vector<StreamId>& streams = devices_[device].compute;
  while (streams.size() <= number) streams.push_back(add_stream(device));
  return streams[number];
}

StreamId Machine::transfer_stream(std::uint32_t device, std::uint32_t number) {
  std::vector<StreamId>& streams = devices_[device].transfers;
  while (streams.size() <= number) streams.push_back(add_stream(device));
  return streams[number];
}

void Machine::set_host_thread(std::uint32_t thread) {
  host_thread_ = thread;
  if (thread >= host_now_.size()) host_now_.resize(thread + std::size_t{1}, 0);
}

void Machine::take(Time duration) {
  const Time launched = duration + options_.launch_ns;
  if (launched > limits::kTimeNs - taken_ns_) {
    throw LimitReached(
        "a step takes at most 11 days (10^15 ns) if all its work runs one after "
        "another; this step takes longer");
  }
  taken_ns_ += launched;
}

Time Machine::copy_ns(Range bytes) const {
  const LinkRates& link = options_.links;
  const std::int64_t rate =
      std::min({link.h2d_alone, link.d2h_alone, link.h2d_both, link.d2h_both});
  return static_cast<Time>(bytes.bytes) * 1000 / rate + 1 +
         std::max(link.latency_ns, options_.peer.latency_ns);
}

void Machine::issue(const StreamOp& op) {
  for (StreamOpConsumer* consumer : consumers_) (*consumer)(op);
}

// The queue's marks follow the stream on which the thread computes, if it is on the launch's
// device.
void Machine::launched(StreamId stream) {
  host_now_[host_thread_] += options_.launch_ns;
  ++operations_;
  PerDevice& device = devices_[device_of(stream)];
  const bool computes_here = device_of(current_) == device_of(stream);
  host_not_before(device.queue.launched(engine_, computes_here ? current_ : stream, issue_time()));
}

EventHandle Machine::record(Step step, StreamId stream) {
  EventId id{events_};
  if (has(WorldFault::kOneEvent)) {
    id = EventId{0};
  } else if (free_events_.empty()) {
    ++events_;
  } else {
    id = free_events_.back();
    free_events_.pop_back();
  }
  ++live_events_;
  ++operations_;
  const Signal signal = engine_.record(stream, issue_time());
  if (!consumers_.empty()) {
    StreamOp op;
    op.kind = StreamOpKind::kRecord;
    op.step = step;
    op.stream = stream;
    op.event = id;
    issue(op);
  }
  return std::make_shared<EventImpl>(*this, id, signal, stream);
}

void Machine::wait(Step step, StreamId stream, const EventHandle& event) {
  if (!event) return;  // it was never recorded
  ++operations_;
  engine_.wait(stream, event->signal, issue_time());
  if (consumers_.empty()) return;
  StreamOp op;
  op.kind = StreamOpKind::kWait;
  op.step = step;
  op.stream = stream;
  op.event = event->id;
  issue(op);
}

void Machine::synchronize(Step step, StreamId stream) {
  ++operations_;
  host_not_before(engine_.run_until_idle(stream));
  if (consumers_.empty()) return;
  StreamOp op;
  op.kind = StreamOpKind::kStreamSync;
  op.step = step;
  op.stream = stream;
  issue(op);
}

void Machine::forget(EventImpl& event) noexcept {
  engine_.release(event.signal);
  if (!has(WorldFault::kOneEvent)) free_events_.push_back(event.id);
  --live_events_;
}

void Machine::kernel(std::string_view name, std::uint64_t tag, std::span<const Range> reads,
                     std::span<const Range> writes, KernelTime time) {
  take(time.ns);
  engine_.kernel(current_, time, issue_time());
  launched(current_);
  if (consumers_.empty()) return;
  StreamOp op;
  op.stream = current_;
  op.reads = reads;
  op.writes = writes;
  op.name = name;
  op.tag = tag;
  issue(op);
}

void Machine::copy_on_device(std::string_view name, Range from, Range to, KernelTime time) {
  take(time.ns);
  engine_.kernel(current_, time, issue_time());
  launched(current_);
  if (consumers_.empty()) return;
  StreamOp op;
  op.kind = StreamOpKind::kCopy;
  op.stream = current_;
  op.reads = {&from, 1};
  op.writes = {&to, 1};
  op.name = name;
  issue(op);
}

void Machine::copy(Step step, CopyKind kind, Range from, Range to, StreamId stream,
                   bool blocks_host) {
  take(copy_ns(from));
  const Time begun = issue_time();
  const auto bytes = static_cast<std::int64_t>(from.bytes);
  engine_.copy(stream, kind, bytes, begun);
  if (has(WorldFault::kShortCopies)) from.bytes = to.bytes = from.bytes / 512 * 512;
  issue_copy(step, kind, from, to, stream);
  // It may block, which costs time but guarantees no order.
  if (blocks_host && choose(choices::ChoicePoint::kPageable, 2) == 0) {
    const bool up = kind == CopyKind::kHostToDevice;
    const std::int64_t rate = up ? options_.pageable_h2d : options_.pageable_d2h;
    const Time aside = rate > 0 ? bytes * 1000 / rate : 0;
    host_not_before(std::max(engine_.run_until_idle(stream), begun + aside));
  }
}

void Machine::peer_copy(Step step, Range from, Range to, std::uint32_t from_device,
                        StreamId stream) {
  take(copy_ns(from));
  engine_.peer_copy(stream, devices_[from_device].id, static_cast<std::int64_t>(from.bytes),
                    issue_time());
  issue_copy(step, CopyKind::kPeer, from, to, stream);
}

void Machine::issue_copy(Step step, CopyKind kind, Range from, Range to, StreamId stream) {
  launched(stream);
  if (consumers_.empty()) return;
  StreamOp op;
  op.kind = StreamOpKind::kCopy;
  op.copy = kind;
  op.step = step;
  op.stream = stream;
  op.reads = {&from, 1};
  op.writes = {&to, 1};
  op.name = name(step);
  issue(op);
}

Storage Machine::allocate(std::int64_t bytes, StreamId stream, Step step, MemoryKind kind) {
  const std::uint32_t device = device_of(stream);
  if (choose(choices::ChoicePoint::kMemory, 2) != 0) devices_[device].pool.refuse(bytes);
  const StreamId pool = has(WorldFault::kOnePool) ? devices_[device].compute.front() : stream;
  const DevicePoolStats& stats = devices_[device].pool.stats();
  const DriverCalls before = stats.driver;
  Block* block = devices_[device].pool.allocate(bytes, pool);
  if (stats.driver.gave_back()) charge_driver(devices_[device], stats.driver.since(before));
  ++live_storages_;
  Storage storage =
      std::make_shared<StorageImpl>(*this, device, block, bytes, ++storages_, kind, place_);
  if (block) devices_[device].count(kind, block->bytes());
  if (block && memory_watch_) memory_watch_->allocated(*storage);
  if (block && !consumers_.empty()) {
    StreamOp op;
    op.kind = StreamOpKind::kAlloc;
    op.step = step;
    op.stream = stream;
    op.range = block->range();
    issue(op);
  }
  return storage;
}

// The driver waits for the device before it takes memory back. This costs time but guarantees no
// order.
void Machine::charge_driver(const PerDevice& device, const DriverCalls& calls) {
  if (calls.gave_back()) {
    for (std::uint32_t stream = 0; stream < stream_devices_.size(); ++stream) {
      if (&devices_[stream_devices_[stream]] != &device) continue;
      host_not_before(engine_.run_until_idle(StreamId{stream}));
    }
  }
  host_not_before(host_now() + options_.driver.of(calls));
}

void Machine::free(StorageImpl& storage) noexcept {
  --live_storages_;
  check_unlocked("a storage is dropped");
  if (!storage.block) return;
  if (!consumers_.empty()) {
    StreamOp op;
    op.kind = StreamOpKind::kFree;
    op.stream = storage.block->stream();
    op.range = storage.block->range();
    issue(op);
    if (has(WorldFault::kFreedTwice)) issue(op);
  }
  devices_[storage.device].kinds[storage.kind] -= storage.block->bytes();
  if (memory_watch_) memory_watch_->freed(storage);
  devices_[storage.device].pool.free(storage.block);
}

void Machine::set_kind(StorageImpl& storage, MemoryKind kind) {
  if (storage.block) {
    KindBytes& kinds = devices_[storage.device].kinds;
    kinds[storage.kind] -= storage.block->bytes();
    kinds[kind] += storage.block->bytes();
  }
  const MemoryKind before = std::exchange(storage.kind, kind);
  if (storage.block && memory_watch_) memory_watch_->changed_kind(storage, before);
}

void Machine::PerDevice::count(MemoryKind kind, std::int64_t bytes) {
  kinds[kind] += bytes;
  const Gauge& allocated = pool.stats().allocated_bytes;
  if (allocated.current == allocated.peak) kinds_at_peak = kinds;
}

void Machine::reset_peaks() {
  for (PerDevice& device : devices_) {
    device.pool.reset_peaks();
    device.kinds_at_peak = device.kinds;
  }
  host_pool_->reset_peaks();
  if (memory_watch_) memory_watch_->peaks_reset();
}

void Machine::record_use(Step step, const Storage& storage, StreamId stream) {
  if (!storage->block) return;
  devices_[storage->device].pool.record_use(storage->block, stream);
  if (consumers_.empty()) return;
  StreamOp op;
  op.kind = StreamOpKind::kRecordUse;
  op.step = step;
  op.stream = stream;
  op.range = storage->block->range();
  issue(op);
}

// With one host thread, nobody else can return memory to a full pool.
void Machine::refuse_host(std::int64_t bytes) {
  if (has(WorldFault::kPoolBlocks)) {
    hazards_.push_back(check::blocked_for_good("pinned memory"));
  }
  host_pool_->refuse(bytes);
}

HostBlock Machine::allocate_host(Step step, std::int64_t bytes) {
  check_unlocked("host bytes are allocated");
  if (choose(choices::ChoicePoint::kMemory, 2) != 0) refuse_host(bytes);
  const HostBlock block = host_pool_->allocate(bytes);
  if (!consumers_.empty()) {
    StreamOp op;
    op.kind = StreamOpKind::kAlloc;
    op.step = step;
    op.stream = kNoStream;
    op.range = block.range();
    issue(op);
  }
  return block;
}

void Machine::release_host(Step step, const HostBlock& block, std::span<const EventHandle> events) {
  std::vector<PoolToken> until;
  StreamOp op;
  op.step = step;
  op.range = block.range();
  for (const EventHandle& event : events) {
    if (!event) continue;  // it was never recorded
    until.push_back(tokens_.hold(event));
    op.kind = StreamOpKind::kRecordUse;
    op.stream = event->stream;
    op.event = event->id;
    op.until_event = true;
    issue(op);
  }
  op.kind = StreamOpKind::kFree;
  op.stream = kNoStream;
  issue(op);
  if (has(WorldFault::kHostFreedTwice)) issue(op);
  host_pool_->free(block, until);
}

Time Machine::compute_blocked_on_copies_ns(std::uint32_t device) const {
  Time blocked = 0;
  for (const StreamId stream : devices_[device].compute) {
    blocked += engine_.stats(stream).blocked_on_copies_ns;
  }
  return blocked;
}

Time Machine::compute_end_ns(std::uint32_t device) const {
  Time end = 0;
  for (const StreamId stream : devices_[device].compute) {
    end = std::max(end, engine_.stats(stream).end_ns);
  }
  return end;
}

Time Machine::drain() {
  host_not_before(engine_.drain());
  return engine_.makespan();
}

PoolToken Machine::Tokens::add(Entry entry) {
  if (unused_.empty()) {
    entries_.push_back(std::move(entry));
    return PoolToken{entries_.size() - 1};
  }
  const std::uint64_t place = unused_.back();
  unused_.pop_back();
  entries_[place] = std::move(entry);
  return PoolToken{place};
}

PoolToken Machine::Tokens::record(StreamId stream) {
  return add({nullptr, machine_.engine_.record(stream, machine_.issue_time())});
}

PoolToken Machine::Tokens::hold(const EventHandle& event) {
  ++held_events_;
  return add({event, event->signal});
}

bool Machine::Tokens::done(PoolToken token) {
  if (machine_.has(WorldFault::kQueriesLie)) return true;
  const Signal signal = entries_[static_cast<std::size_t>(token)].signal;
  const bool done = machine_.engine_.done(signal, machine_.issue_time());
  // An answer other than the clock's acts as if the query came earlier, or the host was slower.
  const bool found = machine_.choices_ ? machine_.choices_->poll(done) : done;
  if (found && !done) wait(token);
  return found;
}

void Machine::Tokens::wait(PoolToken token) {
  machine_.host_not_before(
      machine_.engine_.run_until(entries_[static_cast<std::size_t>(token)].signal));
}

// When a pool stops waiting, the work that it waited for must be done.
void Machine::Tokens::drop(PoolToken token) {
  Entry& entry = entries_[static_cast<std::size_t>(token)];
  if (!machine_.ending_ && !machine_.engine_.done(entry.signal, machine_.issue_time())) {
    check::Hazard hazard;
    hazard.kind = check::HazardKind::kLimit;
    hazard.message = "a pool reused memory before its recorded uses were done";
    machine_.hazards_.push_back(std::move(hazard));
  }
  if (entry.event) {
    --held_events_;
    entry.event.reset();
  } else {
    machine_.engine_.release(entry.signal);
  }
  unused_.push_back(static_cast<std::uint64_t>(token));
}

}  // namespace ferry::sim
