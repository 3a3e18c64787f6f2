#include "vgpu/runtime/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace ferry::vgpu {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Thread& thread() {
  thread_local Thread of_caller;
  return of_caller;
}

// Never destroyed: LibTorch frees what it has until the process is gone.
Runtime& Runtime::get() {
  static auto* const runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() {
  // A process that `ferry run` preloads has none until its launcher has put the operators in place.
  if (std::getenv("FERRY_VIRTUAL_GPU") != nullptr) devices = 0;
  for (int i = 0; i < kDevices; ++i) {
    legacy_[static_cast<std::size_t>(i)].id = StreamId{static_cast<std::uint32_t>(i)};
    legacy_[static_cast<std::size_t>(i)].device = i;
  }
}

cudaError_t Runtime::enter(const char* name) {
  ++calls[name];
  if (broken != cudaSuccess) return fail_with(broken);
  const auto failure = failures.find(name);
  const bool counts = failure != failures.end() &&
                      (failure->second.where == Where::kAnywhere || thread().step != Step::kUser);
  if (counts && failure->second.left-- == 0) {
    const cudaError_t error = failure->second.error;
    failures.erase(failure);
    return fail_with(error);
  }
  ++entries_;
  if (sleepers_ > 0) run_eager();
  run_random();
  return cudaSuccess;
}

cudaError_t Runtime::fail_with(cudaError_t error) {
  thread().last_error = error;
  return error;
}

cudaError_t Runtime::refuse(const std::string& name, std::string why) {
  ++refusals[name];
  thread().refused = std::move(why);
  return fail_with(cudaErrorNotSupported);
}

// --- Streams and when their work runs

Snapshot::Snapshot(Stream& of) : stream(&of), clock(Runtime::get().clock) {
  if (clock != nullptr) mark = clock->record(of.id, of.device);
}

Snapshot::~Snapshot() {
  if (clock != nullptr) clock->release(mark);
}

Stream& Runtime::stream(cudaStream_t handle, int device) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    return legacy_[static_cast<std::size_t>(device)];
  }
  if (handle == cudaStreamPerThread) {
    Stream*& own = thread().default_streams[static_cast<std::size_t>(device)];
    if (own == nullptr) own = create_stream(device, true, 0);
    return *own;
  }
  auto* const wanted = reinterpret_cast<Stream*>(handle);
  for (const auto& stream : streams_) {
    if (stream.get() == wanted) return *stream;
  }
  std::fprintf(stderr, "virtual GPU: %p is no stream\n", static_cast<void*>(wanted));
  std::abort();
}

Stream* Runtime::create_stream(int device, bool blocking, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->id = StreamId{stream_ids_++};
  stream->device = device;
  stream->blocking = blocking;
  stream->priority = priority;
  streams_.push_back(std::move(stream));
  return streams_.back().get();
}

void Runtime::destroy_stream(cudaStream_t handle) {
  Stream& stream = this->stream(handle);
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [&](const auto& each) { return each.get() == &stream; });
  finish(stream);
  gone_.push_back(std::move(*found));
  streams_.erase(found);
}

void Runtime::order(Stream& earlier, Stream& later) {
  StreamOp op;
  op.kind = StreamOpKind::kRecord;
  op.stream = earlier.id;
  op.event = EventId{event_ids_++};
  tell(op);
  op.kind = StreamOpKind::kWait;
  op.stream = later.id;
  tell(op);
  const auto snapshot = std::make_shared<Snapshot>(earlier);
  if (snapshot->clock != nullptr) clock->wait(later.id, later.device, snapshot->mark);
  earlier.queue.push_back({.fulfil = snapshot});
  later.queue.push_back({.wait_for = snapshot});
}

void Runtime::order(StreamId earlier, Stream& later) {
  for (Stream& legacy : legacy_) {
    if (legacy.id == earlier) return order(legacy, later);
  }
  for (const auto& stream : streams_) {
    if (stream->id == earlier) return order(*stream, later);
  }
  for (const auto& stream : gone_) {
    if (stream->id != earlier) continue;
    order(*stream, later);
    return finish(*stream);  // nobody else runs it
  }
}

// What the legacy stream is given follows all blocking streams, and they follow it.
void Runtime::join_legacy(Stream& stream, bool before) {
  Stream& legacy = legacy_[static_cast<std::size_t>(stream.device)];
  if (&stream != &legacy) return;
  for (const auto& other : streams_) {
    if (!other->blocking || other->device != stream.device) continue;
    if (before) {
      order(*other, legacy);
    } else {
      order(legacy, *other);
    }
  }
}

void Runtime::enqueue(Stream& stream, Work work) {
  choose_tempo(stream);
  const bool joins = static_cast<bool>(work.body);
  if (joins) join_legacy(stream, true);
  if (joins && clock != nullptr) clock->issue(stream.id, stream.device, work.cost, work.name);
  if (work.sleep_us > 0) ++sleepers_;
  stream.queue.push_back(std::move(work));
  if (joins) join_legacy(stream, false);
  run_eager();
}

void Runtime::sleep(Stream& stream, std::int64_t microseconds) {
  enqueue(stream, {.body = [] {},
                   .cost = Sleep{1000 * microseconds},
                   .name = "sleep",
                   .sleep_us = microseconds});
}

void Runtime::wait(Stream& stream, const SnapshotRef& snapshot) {
  if (snapshot->clock != nullptr) clock->wait(stream.id, stream.device, snapshot->mark);
  enqueue(stream, {.wait_for = snapshot});
}

// Until the host waits for it, or has called long enough.
bool Runtime::sleeps(Work& work, bool awaited) {
  if (work.sleep_us == 0) return false;
  if (work.wakes_at < 0) work.wakes_at = entries_ + work.sleep_us;
  if (!awaited && entries_ < work.wakes_at) return true;
  --sleepers_;
  now_ns_ += 1000 * work.sleep_us;
  return false;
}

// What a kernel fails with is the device's end, as it is CUDA's.
void Runtime::run_body(const Work& work) {
  try {
    work.body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "virtual GPU: a kernel failed: %s\n", error.what());
    broken = cudaErrorAssert;
  }
}

bool Runtime::run_one(Stream& stream, bool awaited) {
  if (stream.queue.empty()) return false;
  if (const SnapshotRef& wait = stream.queue.front().wait_for; wait && !wait->done) return false;
  if (sleeps(stream.queue.front(), awaited)) return false;
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  now_ns_ += 1000;
  if (work.body) run_body(work);
  if (work.fulfil) {
    work.fulfil->done = true;
    work.fulfil->done_ns = now_ns_;
  }
  return true;
}

// Only as much as that takes: what it waits for, and what that waits for.
void Runtime::finish(SnapshotRef snapshot) {
  while (!snapshot->done) {
    Stream& stream = *snapshot->stream;
    if (!run_one(stream, true)) finish(stream.queue.front().wait_for);
    if (is_apart()) run_eager();  // the others do not wait while this one is drained
  }
}

void Runtime::finish(Stream& stream) {
  while (!stream.queue.empty()) {
    if (!run_one(stream, true)) finish(stream.queue.front().wait_for);
    if (is_apart()) run_eager();  // the others do not wait while this one is drained
  }
}

void Runtime::finish_device(int device) {
  finish(legacy_[static_cast<std::size_t>(device)]);
  for (const auto& stream : streams_) {
    if (stream->device == device) finish(*stream);
  }
}

void Runtime::await(Stream& stream) {
  finish(stream);
  if (clock != nullptr) clock->host_waits(stream.id, stream.device);
}

void Runtime::await(const SnapshotRef& snapshot) {
  finish(snapshot);
  if (snapshot->clock != nullptr) clock->host_waits(snapshot->mark);
}

bool Runtime::is_done(Stream& stream) {
  if (clock_answers && !clock->done(Snapshot(stream).mark)) return false;
  if (clock_answers || asked_in_vain()) finish(stream);
  if (!stream.queue.empty()) return false;
  await(stream);
  return true;
}

bool Runtime::is_done(const SnapshotRef& snapshot) {
  if (clock_answers && !clock->done(snapshot->mark)) return false;
  if (clock_answers || asked_in_vain()) finish(snapshot);
  if (!snapshot->done) return false;
  await(snapshot);
  return true;
}

void Runtime::synchronize_device(int device) {
  await(legacy_[static_cast<std::size_t>(device)]);
  for (const auto& stream : streams_) {
    if (stream->device == device) await(*stream);
  }
  StreamOp op;
  op.kind = StreamOpKind::kStreamSync;
  op.stream = legacy_[static_cast<std::size_t>(device)].id;
  tell(op);
  for (const auto& stream : streams_) {
    op.stream = stream->id;
    if (stream->device == device) tell(op);
  }
}

void Runtime::run_everything() {
  for (int device = 0; device < kDevices; ++device) finish_device(device);
  unmap_freed();
}

void Runtime::run_eager() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Stream& stream : legacy_) {
      while (stream.tempo == Tempo::kEager && run_one(stream, false)) moved = true;
    }
    for (const auto& stream : streams_) {
      while (stream->tempo == Tempo::kEager && run_one(*stream, false)) moved = true;
    }
  }
}

void Runtime::run_random() {
  if (tempo_ == Tempo::kEager || tempo_ == Tempo::kLazy) return;
  std::vector<Stream*> candidates;
  const auto consider = [&](Stream& stream) {
    if (stream.tempo == Tempo::kRandom && !stream.queue.empty()) candidates.push_back(&stream);
  };
  for (Stream& stream : legacy_) consider(stream);
  for (const auto& stream : streams_) consider(*stream);
  if (candidates.empty()) return;
  for (std::uint64_t runs = draw(4); runs > 0; --runs) {
    run_one(*candidates[draw(candidates.size())], false);
  }
  run_eager();
}

// When it is first given work: so equal programs meet equal tempos, whichever streams they got.
void Runtime::choose_tempo(Stream& stream) {
  if (stream.tempo_of == tempos_) return;
  stream.tempo_of = tempos_;
  stream.tempo = tempo_;
  if (is_apart()) {
    const bool main = &stream == &legacy_[static_cast<std::size_t>(stream.device)];
    stream.tempo = main == (tempo_ == Tempo::kMainFirst) ? Tempo::kEager : Tempo::kLazy;
  }
  if (tempo_ != Tempo::kMixed) return;
  constexpr std::array<Tempo, 3> kTempos = {Tempo::kEager, Tempo::kLazy, Tempo::kRandom};
  stream.tempo = kTempos[draw(kTempos.size())];
}

// Nothing is queued: streams take it up with their next work.
void Runtime::set_tempo(Tempo tempo, std::uint64_t seed) {
  run_everything();
  tempo_ = tempo;
  seed_ = seed;
  draws_ = 0;
  ++tempos_;
}

void Runtime::set_tempo(Stream& stream, Tempo tempo) {
  stream.tempo_of = tempos_;
  stream.tempo = tempo;
}

bool Runtime::asked_in_vain() {
  constexpr std::int64_t kPatience = 1000;
  return (is_apart() || tempo_ == Tempo::kMixed) && ++asked_ % kPatience == 0;
}

std::uint64_t Runtime::draw(std::uint64_t below) { return mix(seed_ ^ mix(++draws_)) % below; }

// --- Events

SnapshotRef Runtime::record(Stream& stream) {
  const auto snapshot = std::make_shared<Snapshot>(stream);
  enqueue(stream, {.fulfil = snapshot});
  return snapshot;
}

Event* Runtime::create_event(bool timed) {
  auto* const event = new Event{EventId{event_ids_++}, thread().device, timed, nullptr};
  events_.insert(event);
  return event;
}

void Runtime::destroy_event(Event* event) {
  if (listener != nullptr) listener->destroy_event(event->id);
  events_.erase(event);
  delete event;
}

}  // namespace ferry::vgpu
