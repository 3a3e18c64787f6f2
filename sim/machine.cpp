#include "sim/machine.h"

#include <algorithm>
#include <utility>

namespace ferry::sim {

namespace {

// How far the host may be ahead: about a thousand launches wait in CUDA's queues, then a further
// one blocks (an observed figure, documented nowhere). Kept by marks, one every kMarkEvery
// launches.
constexpr std::int64_t kMarkEvery = 128;
constexpr std::size_t kMarksAhead = 8;

// No stream owns host memory; every stream that copies announces its use.
constexpr StreamId kNoStream{0xffff'ffff};

}  // namespace

StorageImpl::StorageImpl(Machine& owner, Block* pool_block, std::int64_t size, std::uint64_t number)
    : machine(&owner),
      block(pool_block),
      bytes(size),
      identity(number),
      address(pool_block ? pool_block->address() : 0) {}

StorageImpl::~StorageImpl() { machine->free(*this); }

EventImpl::~EventImpl() { machine->forget(*this); }

Machine::Machine(const MachineOptions& options)
    : options_(options),
      device_(engine_.add_device(options.links)),
      tokens_(*this),
      pool_(0, options.device_bytes, tokens_),
      host_pool_(options.host_bytes, tokens_) {
  compute_.push_back(engine_.add_stream(device_));
  lanes_[0] = engine_.add_stream(device_);
  lanes_[1] = engine_.add_stream(device_);
  current_ = compute_.front();
}

StreamId Machine::compute_stream(std::uint32_t number) {
  while (compute_.size() <= number) compute_.push_back(engine_.add_stream(device_));
  return compute_[number];
}

void Machine::issue(const StreamOp& op) {
  for (StreamOpConsumer* consumer : consumers_) (*consumer)(op);
}

void Machine::launched() {
  host_now_ += options_.launch_ns;
  ++operations_;
  if (++launches_ % kMarkEvery != 0) return;
  marks_.push_back(engine_.record(current_, host_now_));
  if (marks_.size() <= kMarksAhead) return;
  host_now_ = std::max(host_now_, engine_.run_until(marks_.front()));
  engine_.release(marks_.front());
  marks_.pop_front();
}

EventHandle Machine::record(Step step, StreamId stream) {
  EventId id{events_};
  if (free_events_.empty()) {
    ++events_;
  } else {
    id = free_events_.back();
    free_events_.pop_back();
  }
  ++live_events_;
  ++operations_;
  const Signal signal = engine_.record(stream, host_now_);
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
  if (!event) return;  // never recorded
  ++operations_;
  engine_.wait(stream, event->signal, host_now_);
  if (consumers_.empty()) return;
  StreamOp op;
  op.kind = StreamOpKind::kWait;
  op.step = step;
  op.stream = stream;
  op.event = event->id;
  issue(op);
}

void Machine::forget(EventImpl& event) noexcept {
  engine_.release(event.signal);
  free_events_.push_back(event.id);
  --live_events_;
}

void Machine::kernel(std::string_view name, std::uint64_t tag, std::span<const Range> reads,
                     std::span<const Range> writes, Time duration) {
  engine_.kernel(current_, duration, host_now_);
  launched();
  if (consumers_.empty()) return;
  StreamOp op;
  op.stream = current_;
  op.reads = reads;
  op.writes = writes;
  op.name = name;
  op.tag = tag;
  issue(op);
}

void Machine::copy_on_device(std::string_view name, Range from, Range to, Time duration) {
  engine_.kernel(current_, duration, host_now_);
  launched();
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
  engine_.copy(stream, kind, static_cast<std::int64_t>(from.bytes), host_now_);
  launched();
  if (!consumers_.empty()) {
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
  // That it may block is no order to rely on: only the time is taken.
  if (blocks_host) host_now_ = std::max(host_now_, engine_.run_until_idle(stream));
}

Storage Machine::allocate(std::int64_t bytes, StreamId stream, Step step) {
  Block* block = pool_.allocate(bytes, stream);
  ++live_storages_;
  Storage storage = std::make_shared<StorageImpl>(*this, block, bytes, ++storages_);
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

void Machine::free(StorageImpl& storage) noexcept {
  --live_storages_;
  if (!storage.block) return;
  if (!consumers_.empty()) {
    StreamOp op;
    op.kind = StreamOpKind::kFree;
    op.stream = storage.block->stream();
    op.range = storage.block->range();
    issue(op);
  }
  pool_.free(storage.block);
}

void Machine::record_use(Step step, const Storage& storage, StreamId stream) {
  if (!storage->block) return;
  pool_.record_use(storage->block, stream);
  if (consumers_.empty()) return;
  StreamOp op;
  op.kind = StreamOpKind::kRecordUse;
  op.step = step;
  op.stream = stream;
  op.range = storage->block->range();
  issue(op);
}

HostBlock Machine::allocate_host(Step step, std::int64_t bytes) {
  const HostBlock block = host_pool_.allocate(bytes);
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
    if (!event) continue;  // never recorded
    until.push_back(tokens_.hold(event));
    op.kind = StreamOpKind::kRecordUse;
    op.stream = event->stream;
    issue(op);
  }
  op.kind = StreamOpKind::kFree;
  op.stream = kNoStream;
  issue(op);
  host_pool_.free(block, until);
}

Time Machine::compute_blocked_on_copies_ns() const {
  Time blocked = 0;
  for (const StreamId stream : compute_) blocked += engine_.stats(stream).blocked_on_copies_ns;
  return blocked;
}

Time Machine::drain() {
  host_now_ = std::max(host_now_, engine_.drain());
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
  return add({nullptr, machine_.engine_.record(stream, machine_.host_now_)});
}

PoolToken Machine::Tokens::hold(const EventHandle& event) {
  ++held_events_;
  return add({event, event->signal});
}

bool Machine::Tokens::done(PoolToken token) {
  return machine_.engine_.done(entries_[static_cast<std::size_t>(token)].signal,
                               machine_.host_now_);
}

void Machine::Tokens::wait(PoolToken token) {
  const Time end = machine_.engine_.run_until(entries_[static_cast<std::size_t>(token)].signal);
  machine_.host_now_ = std::max(machine_.host_now_, end);
}

void Machine::Tokens::drop(PoolToken token) {
  Entry& entry = entries_[static_cast<std::size_t>(token)];
  if (entry.event) {
    --held_events_;
    entry.event.reset();
  } else {
    machine_.engine_.release(entry.signal);
  }
  unused_.push_back(static_cast<std::uint64_t>(token));
}

}  // namespace ferry::sim
