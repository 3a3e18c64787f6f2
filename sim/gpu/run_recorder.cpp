#include "sim/gpu/run_recorder.h"

#include <algorithm>

namespace ferry::sim {

void RunRecorder::begin(Machine& machine) {
  machine_ = &machine;
  record_ = {};
  record_.launch_ns = machine.options().launch_ns;
  began_ = 0;
  streams_.clear();
  events_.clear();
  names_.clear();
  live_.clear();
  machine.add_consumer(this);
  machine.trace_to(this);
  machine.watch_memory(this);
}

void RunRecorder::end() {
  record_.step_ns = machine_->engine().makespan() - began_;
  machine_->trace_to(nullptr);
  machine_->watch_memory(nullptr);
  machine_ = nullptr;
}

RunRecorder::Stream& RunRecorder::of(StreamId stream) {
  const auto number = static_cast<std::size_t>(stream);
  if (streams_.size() <= number) streams_.resize(number + 1);
  return streams_[number];
}

std::uint32_t RunRecorder::name(std::string_view text) {
  const auto found = names_.find(text);
  if (found != names_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(record_.names.size());
  record_.names.emplace_back(text);
  names_.emplace(text, number);
  return number;
}

void RunRecorder::operator()(const StreamOp& op) {
  const bool work = op.kind == StreamOpKind::kKernel || op.kind == StreamOpKind::kCopy;
  const bool event = op.kind == StreamOpKind::kRecord || op.kind == StreamOpKind::kWait;
  if (machine_ == nullptr || (!work && !event) || machine_->device_of(op.stream) != 0) return;
  Stream& stream = of(op.stream);
  if (work) {
    RecordedWork given;
    given.stream = op.stream;
    given.name = name(op.name);
    given.place = machine_->place();
    if (op.kind == StreamOpKind::kCopy) given.bytes = static_cast<std::int64_t>(op.reads[0].bytes);
    stream.last = record_.work.size();
    stream.work.push_back(record_.work.size());
    record_.work.push_back(given);
    return match(stream);
  }
  const auto number = static_cast<std::size_t>(op.event);
  if (events_.size() <= number) events_.resize(number + 1);
  if (op.kind == StreamOpKind::kRecord) {
    events_[number] = stream.last;
    return;
  }
  stream.waits.push_back(record_.waits.size());
  record_.waits.push_back({.stream = op.stream, .on = events_[number]});
  match(stream);
}

void RunRecorder::completed(const CompletedOp& op) {
  if (op.kind == OpKind::kRecord || machine_->device_of(op.stream) != 0) return;
  Stream& stream = of(op.stream);
  (op.kind == OpKind::kWait ? stream.waited : stream.done).push_back(op);
  match(stream);
}

void RunRecorder::match(Stream& stream) {
  while (!stream.work.empty() && !stream.done.empty()) {
    RecordedWork& work = record_.work[stream.work.front()];
    const CompletedOp& op = stream.done.front();
    work.kind = op.kind;
    work.issued = op.issued - began_;
    work.start = op.start - began_;
    work.end = op.end - began_;
    stream.work.pop_front();
    stream.done.pop_front();
  }
  while (!stream.waits.empty() && !stream.waited.empty()) {
    RecordedWait& wait = record_.waits[stream.waits.front()];
    wait.start = stream.waited.front().start - began_;
    wait.end = stream.waited.front().end - began_;
    stream.waits.pop_front();
    stream.waited.pop_front();
  }
}

void RunRecorder::change(MemoryChange change, const StorageImpl& storage, MemoryKind before) {
  if (storage.device != 0) return;
  const std::int64_t bytes = storage.block->bytes();
  if (change == MemoryChange::kFreed) {
    live_.erase(storage.identity);
  } else {
    live_[storage.identity] = {storage.kind, storage.place, bytes};
  }
  record_.memory.push_back({change, storage.kind, before, storage.place, bytes,
                            machine_->pool().stats().reserved_bytes.current, record_.work.size()});
}

void RunRecorder::allocated(const StorageImpl& storage) {
  change(MemoryChange::kAllocated, storage, storage.kind);
}

void RunRecorder::freed(const StorageImpl& storage) {
  change(MemoryChange::kFreed, storage, storage.kind);
}

void RunRecorder::changed_kind(const StorageImpl& storage, MemoryKind before) {
  change(MemoryChange::kOfOtherKind, storage, before);
}

// A step begins. The host has waited for all earlier work, so it is done.
void RunRecorder::peaks_reset() {
  began_ = machine_->engine().makespan();
  record_.work.clear();
  record_.waits.clear();
  record_.memory.clear();
  for (Stream& stream : streams_) stream.last.reset();
  std::fill(events_.begin(), events_.end(), std::nullopt);
  const std::int64_t reserved = machine_->pool().stats().reserved_bytes.current;
  for (const auto& [identity, live] : live_) {
    record_.memory.push_back(
        {MemoryChange::kAllocated, live.kind, live.kind, live.place, live.bytes, reserved, 0});
  }
  record_.found = record_.memory.size();
}

}  // namespace ferry::sim
